#include "base/json.h"

#include <fmt/format.h>

#include "base/json_position.h"

namespace motley {
namespace {

constexpr int kMaxDepth = 32;

Error json_error(const std::string& source, const std::string& cause) {
  return {ErrorCode::kCorrupt, fmt::format("unreadable JSON, {}", source), cause,
          "correct it, or make it again"};
}

// What the library says behind its own name for the error and the place, which we give in our way.
std::string cause_of(const Json::parse_error& error) {
  constexpr std::size_t kCauseMax = 300;
  const std::string_view text = error.what();
  const std::size_t column = text.find("column ");
  const std::size_t colon = column == std::string_view::npos ? column : text.find(": ", column);
  return excerpt(colon == std::string_view::npos ? text : text.substr(colon + 2), kCauseMax);
}

template <class T>
bool has_type(const Json& value) {
  if constexpr (std::is_same_v<T, bool>) return value.is_boolean();
  if constexpr (std::is_same_v<T, std::int64_t>) return value.is_number_integer();
  if constexpr (std::is_same_v<T, double>) return value.is_number();
  if constexpr (std::is_same_v<T, std::string>) return value.is_string();
}

}  // namespace

Result<Json> parse_json(std::string_view text, const std::string& source) {
  if (const auto flaw = find_json_flaw(text, kMaxDepth)) {
    return json_error(at_place(source, place_of(text, flaw->offset)), flaw->cause);
  }
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& e) {
    const std::size_t offset = e.byte > 0 ? e.byte - 1 : 0;
    return json_error(at_place(source, place_of(text, offset)), cause_of(e));
  } catch (const Json::exception& e) {
    return json_error(source, e.what());
  }
}

template <class T>
Result<T> json_get(const Json& object, const char* key, const std::string& source) {
  if (!object.is_object()) return json_error(source, "an object was expected");
  const auto it = object.find(key);
  if (it == object.end()) return json_error(source, fmt::format("key '{}' is missing", key));
  if (!has_type<T>(*it)) return json_error(source, fmt::format("key '{}' has the wrong type", key));
  return it->template get<T>();
}

template Result<bool> json_get<bool>(const Json&, const char*, const std::string&);
template Result<std::int64_t> json_get<std::int64_t>(const Json&, const char*, const std::string&);
template Result<double> json_get<double>(const Json&, const char*, const std::string&);
template Result<std::string> json_get<std::string>(const Json&, const char*, const std::string&);

}  // namespace motley
