#include "base/toml.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

namespace motley {
namespace {

// The parser (toml++ 3.3) makes assumptions about the text, such as a name after '[['. It checks
// them only by assertions, and continues with invalid state if those are disabled. Here each is
// checked in every build, and a violation is a syntax error.
struct BrokenAssumption {};

constexpr void test_assumption(bool holds) {
  if (!holds) throw BrokenAssumption();
}

}  // namespace
}  // namespace motley

#define TOML_ASSERT(expression) motley::test_assumption(static_cast<bool>(expression))
#pragma push_macro("NDEBUG")
#undef NDEBUG
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

namespace motley {
namespace {

// Together with the length of a key, these bound the memory of `places`.
constexpr int kDepthMax = 8;
constexpr std::size_t kWordMax = 100;

// A defect that the parser accepts but Motley rejects.
struct TomlFlaw {
  std::size_t offset = 0;
  std::string cause;
};

// The last character of the string that begins at `begin`; at the latest the end of its line.
std::size_t end_of_string(std::string_view text, std::size_t begin) {
  std::size_t i = begin + 1;
  for (; i < text.size() && text[i] != '\n'; ++i) {
    if (text[i] == text[begin]) return i;
    if (text[i] == '\\' && text[begin] == '"' && text.substr(i + 1, 1) != "\n") ++i;
  }
  return i - 1;
}

// The parser frees the parts of a dotted key by unbounded recursion, so a long key would overflow
// the stack. TOML has only ASCII outside strings and comments; the parser's white space tests
// (toml++ 3.3) are undefined for some other characters.
std::optional<TomlFlaw> find_flaw(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  int dots = 0;
  for (std::size_t i = text.starts_with(kByteOrderMark) ? 3 : 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' || c == '\'') {
      if (text.substr(i, 3) == std::string(3, c)) {
        return TomlFlaw{i, "multi-line strings are not supported"};
      }
      i = end_of_string(text, i);
    } else if (c == '#') {
      i = std::min(text.find('\n', i), text.size()) - 1;
    } else if (static_cast<unsigned char>(c) >= 0x80) {
      return TomlFlaw{i, "characters outside ASCII are allowed only within quotes"};
    } else if (std::string_view("\n=,{[").find(c) != std::string_view::npos) {
      dots = 0;
    } else if (c == '.' && ++dots > kDepthMax) {
      return TomlFlaw{i, fmt::format("a key has more than {} parts", kDepthMax)};
    }
  }
  return std::nullopt;
}

// Walks the parsed tree once; copies values and records their positions.
class Converter {
 public:
  explicit Converter(TomlDocument& document) : document_(document) {}

  Result<Json> convert(const toml::node& node, const std::string& path, int depth = 0) {
    const auto begin = node.source().begin;
    document_.places[path] = {static_cast<int>(begin.line), static_cast<int>(begin.column)};
    if (depth > kDepthMax) {
      return Error{ErrorCode::kConfig, fmt::format("unusable value, {}", document_.where(path)),
                   fmt::format("it is nested deeper than {} levels", kDepthMax),
                   "no value of Motley's files is nested that deep"};
    }
    if (const auto* table = node.as_table()) return convert_table(*table, path, depth);
    if (const auto* array = node.as_array()) return convert_array(*array, path, depth);
    if (const auto value = node.value_exact<std::string>()) return Json(*value);
    if (const auto value = node.value_exact<std::int64_t>()) return Json(*value);
    if (const auto value = node.value_exact<double>()) return Json(*value);
    if (const auto value = node.value_exact<bool>()) return Json(*value);
    return Error{ErrorCode::kConfig, fmt::format("unusable value, {}", document_.where(path)),
                 "dates and times are not supported", "write a string or a number"};
  }

 private:
  Result<Json> convert_table(const toml::table& table, const std::string& path, int depth) {
    Json object = Json::object();
    for (const auto& [key, child] : table) {
      const std::string name(key.str());
      if (name.size() > kWordMax) return long_key(key);
      MOTLEY_ASSIGN(
          Json value,
          convert(child, path.empty() ? name : fmt::format("{}.{}", path, name), depth + 1));
      // Not by operator[], which searches all earlier keys.
      object.get_ref<Json::object_t&>().emplace_back(name, std::move(value));
    }
    return object;
  }

  Result<Json> convert_array(const toml::array& array, const std::string& path, int depth) {
    Json list = Json::array();
    for (const auto& child : array) {
      MOTLEY_ASSIGN(Json item, convert(child, fmt::format("{}[{}]", path, list.size()), depth + 1));
      list.push_back(std::move(item));
    }
    return list;
  }

  Error long_key(const toml::key& key) const {
    const auto begin = key.source().begin;
    return {ErrorCode::kConfig,
            fmt::format("bad TOML, {}:{}:{}", document_.source, begin.line, begin.column),
            fmt::format("the key '{}' is longer than {} bytes", excerpt(key.str()), kWordMax),
            "no key of Motley's files is that long"};
  }

  TomlDocument& document_;
};

// The shortest prefix that violates an assumption of the parser ends with the offending character.
SourcePosition place_of_broken_assumption(std::string_view text) {
  std::size_t sound = 0;
  std::size_t broken = text.size();
  while (broken - sound > 1) {
    const std::size_t middle = sound + (broken - sound) / 2;
    bool is_broken = false;
    try {
      (void)toml::parse(text.substr(0, middle));
    } catch (const toml::parse_error&) {
    } catch (const BrokenAssumption&) {
      is_broken = true;
    }
    (is_broken ? broken : sound) = middle;
  }
  return position_of(text, sound);
}

std::string_view trimmed(std::string_view text) {
  constexpr const char* kSpace = " \t\r";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

// A hint for a line that the parser rejects; the most common mistake is a missing pair of quotes.
std::string remedy_of_line(std::string_view line) {
  constexpr const char* kPlain = "correct this line";
  line = line.substr(0, line.find('#'));
  const std::size_t equals = line.find('=');
  if (equals == std::string_view::npos) return kPlain;
  const std::string_view key = trimmed(line.substr(0, equals));
  const std::string_view value = trimmed(line.substr(equals + 1));
  const bool is_word = !value.empty() && key.find_first_of(" \t") == std::string_view::npos &&
                       value.find_first_of("\"'[]{}=,") == std::string_view::npos &&
                       value.find_first_not_of("+-.0123456789") == 0;
  if (!is_word) return kPlain;
  if (value == "True" || value == "False") {
    return fmt::format("write {} = {}", excerpt(key), value == "True" ? "true" : "false");
  }
  return fmt::format("quote text: {} = \"{}\"", excerpt(key), excerpt(value));
}

std::string_view line_of(std::string_view text, std::size_t line) {
  for (std::size_t i = 1; i < line && !text.empty(); ++i) {
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  }
  return text.substr(0, text.find('\n'));
}

std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string TomlDocument::where(const std::string& key_path) const {
  const auto it = places.find(key_path);
  if (it == places.end()) return source;
  return at_position(source, it->second);
}

Result<TomlDocument> parse_toml(std::string_view text, const std::string& source) {
  TomlDocument document;
  document.source = source;
  if (text.size() > kTomlBytesMax) {
    return Error{ErrorCode::kConfig, fmt::format("bad TOML, {}", source),
                 fmt::format("it is larger than {} bytes", kTomlBytesMax), "check the path"};
  }
  if (const auto flaw = find_flaw(text)) {
    return Error{ErrorCode::kConfig,
                 fmt::format("bad TOML, {}", at_position(source, position_of(text, flaw->offset))),
                 flaw->cause, "correct this line"};
  }
  try {
    const toml::table table = toml::parse(text, source);
    MOTLEY_ASSIGN(document.root, Converter(document).convert(table, ""));
  } catch (const toml::parse_error& e) {
    const auto begin = e.source().begin;
    return Error{ErrorCode::kConfig,
                 fmt::format("bad TOML, {}:{}:{}", source, begin.line, begin.column),
                 excerpt(e.description(), 300), remedy_of_line(line_of(text, begin.line))};
  } catch (const BrokenAssumption&) {
    const SourcePosition place = place_of_broken_assumption(text);
    return Error{ErrorCode::kConfig, fmt::format("bad TOML, {}", at_position(source, place)),
                 "a name or a value is missing",
                 remedy_of_line(line_of(text, static_cast<std::size_t>(place.line)))};
  }
  return document;
}

std::string closest_word(const std::string& word, const std::vector<std::string>& candidates) {
  std::string best;
  constexpr std::size_t kBeginningMin = 3;
  std::size_t best_distance = std::min<std::size_t>(4, word.size() / 2 + 1);
  if (word.size() > kWordMax) return best;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kWordMax) continue;
    // An incomplete word counts as one edit.
    const bool is_beginning = word.size() >= kBeginningMin && candidate.starts_with(word);
    const std::size_t distance = is_beginning ? 1 : edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string word_list(const std::vector<const char*>& words, const char* conjunction) {
  std::string list;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool is_last = i + 1 == words.size();
    if (i > 0) list += is_last ? fmt::format(" {} ", conjunction) : ", ";
    list += words[i];
  }
  return list;
}

}  // namespace motley
