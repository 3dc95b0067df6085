#include "protocol/message_fields.h"

#include <fmt/format.h>

#include <utility>

#include "base/json.h"

namespace motley {
namespace {

// A list of values that is_fit accepts, each converted to T.
template <class T, class IsFit>
Result<std::vector<T>> get_list(const Json& json,
                                const char* key,
                                const std::string& source,
                                const IsFit& is_fit) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_array()) {
    return unusable_message(source, fmt::format("'{}' is missing or not a list", key));
  }
  std::vector<T> list;
  for (const Json& entry : *found) {
    if (!is_fit(entry)) {
      return unusable_message(source, fmt::format("'{}' has an invalid entry", key));
    }
    list.push_back(entry.get<T>());
  }
  return list;
}

}  // namespace

Error unusable_message(const std::string& source, const std::string& cause) {
  return {ErrorCode::kCorrupt, fmt::format("malformed message, {}", source), cause,
          "use the same version of Motley on every machine"};
}

Result<std::int64_t> count_of(const Json& json, const char* key, const std::string& source) {
  MOTLEY_ASSIGN(const std::int64_t number, json_get<std::int64_t>(json, key, source));
  if (number < 0) {
    return unusable_message(source, fmt::format("'{}' is {}, less than 0", key, number));
  }
  return number;
}

Result<std::vector<std::int64_t>> counts_of(const Json& json,
                                            const char* key,
                                            const std::string& source) {
  return get_list<std::int64_t>(json, key, source, [&](const Json& entry) {
    return count_of(Json{{key, entry}}, key, source).ok();
  });
}

Result<std::vector<std::string>> names_of(const Json& json,
                                          const char* key,
                                          const std::string& source) {
  return get_list<std::string>(json, key, source,
                               [](const Json& entry) { return entry.is_string(); });
}

Result<std::vector<Json>> objects_of(const Json& json, const char* key, const std::string& source) {
  return get_list<Json>(json, key, source, [](const Json& entry) { return entry.is_object(); });
}

}  // namespace motley
