#include "plan/toml_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/json/json_fields.h"

namespace motley {
namespace {

constexpr const char* kOrLeaveOut = "correct it, or remove the line to get the default";

bool is_line(const std::string& text) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  return text.size() <= kTextMax && std::none_of(text.begin(), text.end(), is_control);
}

}  // namespace

Result<void> TomlTable::read(const char* key, std::string& value) {
  const Json* json = find(key);
  if (json == nullptr) return {};
  if (!json->is_string()) return bad(key, "a string was expected", "put it in quotes");
  auto text = json->get<std::string>();
  if (!is_line(text)) {
    return bad(key, fmt::format("one line of at most {} bytes was expected", kTextMax),
               "shorten it, and remove control characters");
  }
  value = std::move(text);
  return {};
}

Result<void> TomlTable::read(const char* key, bool& value) {
  const Json* json = find(key);
  if (json == nullptr) return {};
  if (!json->is_boolean()) return bad(key, "true or false was expected", kOrLeaveOut);
  value = json->get<bool>();
  return {};
}

Result<void> TomlTable::read(const char* key, std::vector<std::string>& value) {
  const Json* json = find(key);
  if (json == nullptr) return {};
  if (!json->is_array()) {
    return bad(key, "a list of strings was expected", "write it as [\"a\", \"b\"]");
  }
  std::vector<std::string> words;
  for (const Json& item : *json) {
    const std::string place = fmt::format("{}[{}]", key, words.size());
    if (!item.is_string()) return bad(place, "a string was expected", "put it in quotes");
    words.push_back(item.get<std::string>());
    if (is_line(words.back())) continue;
    return bad(place, fmt::format("one line of at most {} bytes was expected", kTextMax),
               "shorten it, and remove control characters");
  }
  value = std::move(words);
  return {};
}

Result<void> TomlTable::read(const char* key, double& value, double min, double max) {
  const Json* json = find(key);
  if (json == nullptr) return {};
  if (!json->is_number()) {
    return bad(key, fmt::format("a number from {} to {} was expected", min, max), kOrLeaveOut);
  }
  const auto number = json->get<double>();
  // Written so that NaN is rejected too.
  if (!(number >= min && number <= max)) {
    return bad(key, fmt::format("it is {}; a number from {} to {} was expected", number, min, max),
               kOrLeaveOut);
  }
  value = number;
  return {};
}

Result<void> TomlTable::read(const char* key, int& value, int min, int max) {
  const Json* json = find(key);
  if (json == nullptr) return {};
  if (!json->is_number_integer()) {
    return bad(key, fmt::format("a whole number from {} to {} was expected", min, max),
               kOrLeaveOut);
  }
  const auto number = json->get<std::int64_t>();
  if (number < min || number > max) {
    return bad(key,
               fmt::format("it is {}; a whole number from {} to {} was expected", number, min, max),
               kOrLeaveOut);
  }
  value = static_cast<int>(number);
  return {};
}

Result<std::vector<TomlTable>> TomlTable::tables(const char* key) {
  std::vector<TomlTable> tables;
  const Json* json = find(key);
  if (json == nullptr) return tables;
  const auto is_table = [](const Json& item) { return item.is_object(); };
  if (!json->is_array() || !std::all_of(json->begin(), json->end(), is_table)) {
    return bad(key, "an array of tables was expected", fmt::format("write it as [[{}]]", key));
  }
  for (const Json& item : *json) {
    tables.push_back(TomlTable(*document_, item, fmt::format("{}[{}]", key, tables.size())));
  }
  return tables;
}

Result<std::optional<TomlTable>> TomlTable::table(const char* key) {
  const Json* json = find(key);
  if (json == nullptr) return std::optional<TomlTable>();
  if (!json->is_object()) return bad(key, "a table was expected", fmt::format("write [{}]", key));
  return std::optional(
      TomlTable(*document_, *json, path_.empty() ? key : fmt::format("{}.{}", path_, key)));
}

Result<void> TomlTable::finish() const {
  for (const auto& [key, value] : table_->items()) {
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    const std::string close = closest_word(key, known_);
    return bad(key, "unknown key",
               close.empty() ? fmt::format("use one of: {}", fmt::join(known_, ", "))
                             : fmt::format("did you mean '{}'?", close));
  }
  return {};
}

Error TomlTable::bad(const std::string& key,
                     const std::string& cause,
                     const std::string& remedy) const {
  const std::string path = key.empty() ? path_ : path_.empty() ? key : path_ + "." + key;
  return {
      ErrorCode::kConfig,
      fmt::format("unusable {}, {}", path.empty() ? "cluster" : fmt::format("'{}'", excerpt(path)),
                  document_->where(path)),
      cause, remedy};
}

const Json* TomlTable::find(const char* key) {
  known_.emplace_back(key);
  const auto it = table_->find(key);
  return it == table_->end() ? nullptr : &*it;
}

}  // namespace motley
