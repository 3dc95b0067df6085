// The members of a JSON document without which, or with a value of another type, a reader does not
// refuse it with an error that names the member.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace motley {

// nullopt: it was read.
using ErrorIn = std::function<std::optional<Error>(const Json&)>;

// Calls visit(object, key, path) for each member, with its object in `document`, which it may
// change; `document` is restored after each call.
inline void for_each_member(
    Json& document,
    Json& value,
    const std::string& path,
    const std::function<void(Json&, const std::string&, const std::string&)>& visit) {
  const Json before = value;
  if (before.is_array()) {
    for (std::size_t i = 0; i < before.size(); ++i) {
      for_each_member(document, value[i], path + "[" + std::to_string(i) + "]", visit);
    }
  }
  if (!before.is_object()) return;
  for (const auto& [key, member] : before.items()) {
    const std::string inner = path.empty() ? key : path + "." + key;
    visit(value, key, inner);
    value = before;
    for_each_member(document, value[key], inner, visit);
  }
}

inline bool is_named(const std::optional<Error>& error, const std::string& key) {
  return error && (error->what + " " + error->cause).find(key) != std::string::npos;
}

// Paths of the members that may be absent.
inline std::vector<std::string> members_that_may_be_absent(Json document, const ErrorIn& error_in) {
  std::vector<std::string> paths;
  for_each_member(document, document, "",
                  [&](Json& object, const std::string& key, const std::string& path) {
                    object.erase(key);
                    if (!is_named(error_in(document), key)) paths.push_back(path);
                  });
  return paths;
}

// Paths of the members that may have another type.
inline std::vector<std::string> members_of_any_type(Json document, const ErrorIn& error_in) {
  std::vector<std::string> paths;
  for_each_member(
      document, document, "", [&](Json& object, const std::string& key, const std::string& path) {
        for (const Json& wrong :
             {Json(nullptr), Json(Json::array({nullptr})), Json{{"strange", nullptr}}}) {
          object[key] = wrong;
          if (!is_named(error_in(document), key)) return paths.push_back(path);
        }
      });
  return paths;
}

template <class T>
std::optional<Error> error_of(const Result<T>& result) {
  return result.ok() ? std::nullopt : std::optional(result.error());
}

}  // namespace motley
