#include "base/json.h"

#include <fmt/format.h>

namespace motley {
namespace {

constexpr int kMaxDepth = 32;

Error json_error(const std::string& source, const std::string& cause) {
  return {ErrorCode::kCorrupt, fmt::format("unreadable JSON, {}", source), cause, ""};
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
  bool too_deep = false;
  const auto limit = [&](int depth, Json::parse_event_t, Json&) {
    too_deep = too_deep || depth > kMaxDepth;
    return !too_deep;
  };
  try {
    Json value = Json::parse(text, limit);
    if (too_deep) return json_error(source, fmt::format("nested deeper than {} levels", kMaxDepth));
    return value;
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
