#include "partitioner/json_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace motley {

template <class T>
Result<T> JsonFields::get(const char* key) const {
  auto value = json_get<T>(object_, key, place_);
  if (!value.ok()) return bad(value.error().cause);
  return value;
}

Result<std::int64_t> JsonFields::integer(const char* key,
                                         std::int64_t min,
                                         std::int64_t max) const {
  MOTLEY_ASSIGN(const std::int64_t value, get<std::int64_t>(key));
  if (value < min || value > max) {
    return bad(fmt::format("key '{}' is {}, which is not within {} and {}", key, value, min, max));
  }
  return value;
}

Result<double> JsonFields::quantity(const char* key) const {
  MOTLEY_ASSIGN(const double value, get<double>(key));
  if (!std::isfinite(value) || value < 0) {
    return bad(fmt::format("key '{}' is {}, which is not a quantity", key, value));
  }
  return value;
}

Result<bool> JsonFields::flag(const char* key) const {
  return get<bool>(key);
}

Result<std::string> JsonFields::text(const char* key) const {
  return get<std::string>(key);
}

Result<std::string> JsonFields::word(const char* key, const char* others) const {
  MOTLEY_ASSIGN(std::string value, get<std::string>(key));
  if (!is_word(value, others)) {
    return bad(fmt::format("key '{}' may hold letters, digits and '{}' only", key, others));
  }
  return value;
}

Result<const Json*> JsonFields::array(const char* key, std::size_t size_max) const {
  MOTLEY_ASSIGN(const Json* value, member(key));
  if (!value->is_array()) return bad(fmt::format("key '{}' is not an array", key));
  if (value->size() > size_max) {
    return bad(fmt::format("key '{}' has more than {} items", key, size_max));
  }
  return value;
}

Result<const Json*> JsonFields::object(const char* key) const {
  MOTLEY_ASSIGN(const Json* value, member(key));
  if (!value->is_object()) return bad(fmt::format("key '{}' is not an object", key));
  return value;
}

Result<void> JsonFields::header(const std::string& format, std::int64_t version) const {
  MOTLEY_ASSIGN(const std::string found, get<std::string>("format"));
  if (found != format) return bad(fmt::format("its format is '{}', not '{}'", found, format));
  MOTLEY_ASSIGN(const std::int64_t found_version, get<std::int64_t>("version"));
  if (found_version != version) {
    return bad(fmt::format("its version is {}; this program reads {}", found_version, version));
  }
  return {};
}

Error JsonFields::bad(const std::string& cause) const {
  return {code_, "unusable " + place_, cause, "make the file again, or correct it"};
}

Result<const Json*> JsonFields::member(const char* key) const {
  if (!object_.is_object()) return bad("an object was expected");
  const auto it = object_.find(key);
  if (it == object_.end()) return bad(fmt::format("key '{}' is missing", key));
  return &*it;
}

bool is_word(const std::string& text, const char* others) {
  constexpr std::size_t kLengthMax = 200;
  const std::string_view extra = others;
  return !text.empty() && text.size() <= kLengthMax &&
         std::all_of(text.begin(), text.end(), [&](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  extra.find(c) != std::string_view::npos;
         });
}

}  // namespace motley
