#include "base/json/json_fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace motley {
namespace {

JsonPath longer(JsonPath path, std::variant<std::string, std::size_t> step) {
  path.push_back(std::move(step));
  return path;
}

}  // namespace

Result<std::int64_t> JsonFields::integer(std::int64_t min, std::int64_t max) const {
  if (!value_->is_number_integer()) return bad("a whole number was expected");
  // A value that fits only unsigned would become negative.
  constexpr std::uint64_t kSignedMax = std::numeric_limits<std::int64_t>::max();
  const bool large = value_->is_number_unsigned() && value_->get<std::uint64_t>() > kSignedMax;
  const auto value = value_->get<std::int64_t>();
  if (large || value < min || value > max) {
    return bad(fmt::format("it is {}; from {} to {} was expected", value_->dump(), min, max));
  }
  return value;
}

Result<double> JsonFields::quantity(double max) const {
  if (!value_->is_number()) return bad("a number was expected");
  const auto value = value_->get<double>();
  // Written so that NaN is rejected too.
  if (!(value >= 0 && value <= max)) {
    return bad(fmt::format("it is {}; from 0 to {} was expected", value, max));
  }
  return value;
}

Result<bool> JsonFields::boolean() const {
  if (!value_->is_boolean()) return bad("true or false was expected");
  return value_->get<bool>();
}

Result<std::string> JsonFields::text() const {
  if (!value_->is_string()) return bad("a string was expected");
  auto text = value_->get<std::string>();
  if (text.size() > kTextMax) return bad(fmt::format("it is longer than {} bytes", kTextMax));
  return text;
}

Result<std::string> JsonFields::word(const char* others) const {
  MOTLEY_ASSIGN(std::string value, text());
  if (is_word(value, others)) return value;
  return bad(fmt::format("it is '{}'; allowed are 1 to 200 letters, digits and '{}'",
                         excerpt(value), others));
}

Result<std::string> JsonFields::one_of(std::span<const char* const> words) const {
  MOTLEY_ASSIGN(std::string value, text());
  if (std::ranges::any_of(words, [&](std::string_view word) { return word == value; })) {
    return value;
  }
  return bad(fmt::format("it is '{}'; allowed are {}", excerpt(value), fmt::join(words, ", ")));
}

Result<std::vector<JsonFields>> JsonFields::items(std::size_t size_min,
                                                  std::size_t size_max) const {
  if (!value_->is_array()) return bad("an array was expected");
  if (value_->size() < size_min || value_->size() > size_max) {
    return bad(
        fmt::format("it has {} items; {} to {} were expected", value_->size(), size_min, size_max));
  }
  std::vector<JsonFields> items;
  for (const Json& item : *value_) {
    items.push_back(JsonFields(*this, item, longer(path_, items.size())));
  }
  return items;
}

Result<std::vector<std::pair<std::string, JsonFields>>> JsonFields::members(
    std::size_t size_max) const {
  if (!value_->is_object()) return bad("an object was expected");
  if (value_->size() > size_max) {
    return bad(
        fmt::format("it has {} members; at most {} were expected", value_->size(), size_max));
  }
  std::vector<std::pair<std::string, JsonFields>> members;
  for (const auto& [name, value] : value_->items()) {
    members.emplace_back(name, JsonFields(*this, value, longer(path_, name)));
  }
  return members;
}

Result<std::int64_t> JsonFields::integer(const char* key,
                                         std::int64_t min,
                                         std::int64_t max) const {
  MOTLEY_ASSIGN(const JsonFields field, member(key));
  return field.integer(min, max);
}

Result<double> JsonFields::quantity(const char* key, double max) const {
  MOTLEY_ASSIGN(const JsonFields field, member(key));
  return field.quantity(max);
}

Result<bool> JsonFields::boolean(const char* key) const {
  MOTLEY_ASSIGN(const JsonFields field, member(key));
  return field.boolean();
}

Result<std::string> JsonFields::text(const char* key) const {
  MOTLEY_ASSIGN(const JsonFields field, member(key));
  return field.text();
}

Result<std::string> JsonFields::word(const char* key, const char* others) const {
  MOTLEY_ASSIGN(const JsonFields field, member(key));
  return field.word(others);
}

Result<std::string> JsonFields::one_of(const char* key, std::span<const char* const> words) const {
  MOTLEY_ASSIGN(const JsonFields field, member(key));
  return field.one_of(words);
}

Result<std::vector<JsonFields>> JsonFields::items(const char* key,
                                                  std::size_t size_min,
                                                  std::size_t size_max) const {
  MOTLEY_ASSIGN(const JsonFields field, member(key));
  return field.items(size_min, size_max);
}

Result<std::vector<std::pair<std::string, JsonFields>>> JsonFields::members(
    const char* key, std::size_t size_max) const {
  MOTLEY_ASSIGN(const JsonFields field, member(key));
  return field.members(size_max);
}

Result<std::vector<std::string>> JsonFields::texts(const char* key, std::size_t size_max) const {
  MOTLEY_ASSIGN(const auto fields, items(key, 0, size_max));
  std::vector<std::string> texts;
  for (const JsonFields& field : fields) {
    MOTLEY_ASSIGN(std::string text, field.text());
    texts.push_back(std::move(text));
  }
  return texts;
}

Result<void> JsonFields::header(const std::string& format, std::int64_t version) const {
  MOTLEY_TRY(header(format, version, version));
  return {};
}

Result<std::int64_t> JsonFields::header(const std::string& format,
                                        std::int64_t version_min,
                                        std::int64_t version_max) const {
  MOTLEY_ASSIGN(const std::string found, text("format"));
  if (found != format) {
    return bad("format", fmt::format("it is '{}', not '{}'", excerpt(found), format));
  }
  constexpr std::int64_t kVersionMax = 1'000'000;
  MOTLEY_ASSIGN(const std::int64_t version, integer("version", 0, kVersionMax));
  if (version >= version_min && version <= version_max) return version;
  const std::string readable = version_min == version_max
                                   ? fmt::format("{}", version_min)
                                   : fmt::format("{} to {}", version_min, version_max);
  return bad("version", fmt::format("it is {}; this program reads {}", version, readable));
}

Error JsonFields::bad(const std::string& cause) const {
  const std::string name = path_.empty() ? "JSON" : fmt::format("'{}'", describe(path_));
  return {code_, fmt::format("unusable {}, {}", name, source_->where(path_)), cause,
          "generate the file again, or correct it"};
}

Error JsonFields::bad(const char* key, const std::string& cause) const {
  const auto field = member(key);
  return field.ok() ? field->bad(cause) : field.error();
}

Result<JsonFields> JsonFields::member(const char* key) const {
  if (!value_->is_object()) return bad("an object was expected");
  const auto it = value_->find(key);
  if (it == value_->end()) return bad(fmt::format("key '{}' is missing", key));
  return JsonFields(*this, *it, longer(path_, key));
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
