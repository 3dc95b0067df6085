#include "run_config/config_value.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "base/toml.h"
#include "run_config/config_io.h"

namespace motley {
namespace {

Error value_error(const std::string& name,
                  const std::string& must,
                  const std::string& where,
                  const std::string& cause) {
  return {ErrorCode::kConfig, fmt::format("{} must be {}, {}", name, must, where), cause,
          "correct this value; `motley config` lists every key"};
}

std::string with_article(const std::string& noun) {
  return fmt::format("{} {}", noun.front() == 'i' ? "an" : "a", noun);
}

std::string found(const Json& value) {
  if (value.is_string()) return "it is a string";
  if (value.is_boolean()) return "it is a boolean";
  if (value.is_number_integer()) return "it is an integer";
  if (value.is_number()) return "it is written with a fraction or an exponent";
  if (value.is_array()) return "it is a list";
  if (value.is_object()) return "it is a section";
  return "it is empty";
}

std::string range_text(const IntegerRange& range) {
  if (range.high == std::numeric_limits<std::int64_t>::max()) {
    return fmt::format("at least {}", range.low);
  }
  return fmt::format("from {} to {}", range.low, range.high);
}

std::string range_text(const NumberRange& range) {
  return fmt::format("{} {} and {} {}", range.low_excluded ? "above" : "at least", range.low,
                     range.high_excluded ? "below" : "at most", range.high);
}

bool contains(const IntegerRange& range, std::int64_t value) {
  return value >= range.low && value <= range.high;
}

// False for NaN.
bool contains(const NumberRange& range, double value) {
  return (range.low_excluded ? value > range.low : value >= range.low) &&
         (range.high_excluded ? value < range.high : value <= range.high);
}

std::optional<std::int64_t> to_integer(const Json& value) {
  if (!value.is_number_integer()) return std::nullopt;
  constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max();
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > kMax) return std::nullopt;
  return value.get<std::int64_t>();
}

// Checks one value against an entry and stores it; one overload per type.
class Setter {
 public:
  Setter(Config& config, const ConfigEntry& entry, const Json& value, const std::string& where)
      : config_(config), entry_(entry), value_(value), where_(where) {}

  Result<void> operator()(Access<bool> access) const {
    if (!value_.is_boolean()) return wrong_type();
    access(config_) = value_.get<bool>();
    return {};
  }

  Result<void> operator()(Access<int> access) const {
    MOTLEY_ASSIGN(const std::int64_t number, integer(entry_.name, value_));
    access(config_) = static_cast<int>(number);
    return {};
  }

  Result<void> operator()(Access<std::int64_t> access) const {
    MOTLEY_ASSIGN(access(config_), integer(entry_.name, value_));
    return {};
  }

  Result<void> operator()(Access<double> access) const {
    MOTLEY_ASSIGN(access(config_), number(entry_.name, value_));
    return {};
  }

  Result<void> operator()(Access<std::string> access) const {
    if (!value_.is_string()) return wrong_type();
    MOTLEY_ASSIGN(access(config_), word(entry_.name, value_));
    return {};
  }

  Result<void> operator()(Access<std::vector<std::int64_t>> access) const {
    if (!value_.is_array()) return wrong_type();
    std::vector<std::int64_t> numbers;
    for (const Json& item : value_) {
      MOTLEY_ASSIGN(const std::int64_t number, integer(item_name(numbers.size()), item));
      numbers.push_back(number);
    }
    access(config_) = std::move(numbers);
    return {};
  }

  Result<void> operator()(Access<std::vector<double>> access) const {
    if (!value_.is_array()) return wrong_type();
    std::vector<double> numbers;
    for (const Json& item : value_) {
      MOTLEY_ASSIGN(const double item_number, number(item_name(numbers.size()), item));
      numbers.push_back(item_number);
    }
    access(config_) = std::move(numbers);
    return {};
  }

  Result<void> operator()(Access<std::vector<std::string>> access) const {
    if (!value_.is_array()) return wrong_type();
    std::vector<std::string> words;
    for (const Json& item : value_) {
      MOTLEY_ASSIGN(auto item_word, word(item_name(words.size()), item));
      words.push_back(std::move(item_word));
    }
    access(config_) = std::move(words);
    return {};
  }

 private:
  [[nodiscard]] std::string item_name(std::size_t index) const {
    return fmt::format("{}[{}]", entry_.name, index);
  }

  [[nodiscard]] Error wrong_type() const {
    return value_error(entry_.name, with_article(type_name(entry_)), where_, found(value_));
  }

  [[nodiscard]] Error not_a_choice(const std::string& name,
                                   const std::string& text,
                                   const Choices& choices) const {
    const std::string must = choices.words.size() == 1
                                 ? std::string(choices.words.front())
                                 : fmt::format("one of {}", fmt::join(choices.words, ", "));
    return value_error(name, must, where_, fmt::format("it is '{}'", excerpt(text)));
  }

  [[nodiscard]] Result<std::int64_t> integer(const std::string& name, const Json& value) const {
    if (!value.is_number_integer()) return value_error(name, "an integer", where_, found(value));
    const auto& range = std::get<IntegerRange>(entry_.rule);
    const auto number = to_integer(value);
    if (!number || !contains(range, *number)) {
      return value_error(name, range_text(range), where_, fmt::format("it is {}", value.dump()));
    }
    return *number;
  }

  [[nodiscard]] Result<double> number(const std::string& name, const Json& value) const {
    if (!value.is_number()) return value_error(name, "a number", where_, found(value));
    const auto number = value.get<double>();
    const auto& range = std::get<NumberRange>(entry_.rule);
    if (!contains(range, number)) {
      return value_error(name, range_text(range), where_, fmt::format("it is {}", number));
    }
    return number;
  }

  // One line of text, and one of the entry's choices if it has some.
  [[nodiscard]] Result<std::string> word(const std::string& name, const Json& value) const {
    MOTLEY_ASSIGN(auto text, plain_text(name, value));
    if (const auto* choices = std::get_if<Choices>(&entry_.rule)) {
      const auto& words = choices->words;
      if (std::ranges::find(words, text) == words.end()) return not_a_choice(name, text, *choices);
    }
    return text;
  }

  [[nodiscard]] Result<std::string> plain_text(const std::string& name, const Json& value) const {
    if (!value.is_string()) return value_error(name, "a string", where_, found(value));
    auto text = value.get<std::string>();
    if (!is_plain_text(text)) {
      return value_error(name, "one line of UTF-8 text", where_,
                         "it contains control characters or bytes that are not UTF-8");
    }
    return text;
  }

  Config& config_;
  const ConfigEntry& entry_;
  const Json& value_;
  const std::string& where_;
};

std::string to_toml(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

// TOML escapes the same characters of plain text as JSON (quotes and backslashes), in the same way.
std::string to_toml(const Json& value) {
  if (value.is_number_float()) return to_toml(value.get<double>());
  if (!value.is_array()) return value.dump();
  std::vector<std::string> items;
  for (const Json& item : value) items.push_back(to_toml(item));
  return fmt::format("[{}]", fmt::join(items, ", "));
}

}  // namespace

bool is_plain_text(const std::string& text) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (std::any_of(text.begin(), text.end(), is_control)) return false;
  try {
    return !Json(text).dump().empty();
  } catch (const Json::exception&) {  // not UTF-8
    return false;
  }
}

Result<void> set_value(Config& config,
                       const ConfigEntry& entry,
                       const Json& value,
                       const std::string& where) {
  return std::visit(Setter(config, entry, value, where), entry.access);
}

Result<void> set_value_from_text(Config& config,
                                 const ConfigEntry& entry,
                                 const std::string& text,
                                 const std::string& where) {
  const bool quoted = !text.empty() && (text.front() == '"' || text.front() == '\'');
  if (std::holds_alternative<Access<std::string>>(entry.access) && !quoted) {
    return set_value(config, entry, Json(text), where);
  }
  const auto document = parse_toml("value = " + text, where);
  // A line break in the text could inject further keys.
  if (!document.ok() || document->root.size() != 1) {
    return value_error(entry.name, with_article(type_name(entry)), where,
                       fmt::format("'{}' is not one TOML value", excerpt(text)));
  }
  return set_value(config, entry, document->root["value"], where);
}

Json get_value(const Config& config, const ConfigEntry& entry) {
  // Accessors are used for reading and writing; here only for reading.
  auto& readable = const_cast<Config&>(config);  // NOLINT(cppcoreguidelines-pro-type-const-cast)
  return std::visit([&](auto access) { return Json(access(readable)); }, entry.access);
}

std::string value_to_toml(const Config& config, const ConfigEntry& entry) {
  return to_toml(get_value(config, entry));
}

}  // namespace motley
