#include "base/toml.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace motley {
namespace {

// Walks the parsed tree once, copying values and noting places.
class Converter {
 public:
  explicit Converter(TomlDocument& document) : document_(document) {}

  Result<Json> convert(const toml::node& node, const std::string& path) {
    const auto begin = node.source().begin;
    document_.places[path] = {static_cast<int>(begin.line), static_cast<int>(begin.column)};
    if (const auto* table = node.as_table()) return convert_table(*table, path);
    if (const auto* array = node.as_array()) return convert_array(*array, path);
    if (const auto value = node.value_exact<std::string>()) return Json(*value);
    if (const auto value = node.value_exact<std::int64_t>()) return Json(*value);
    if (const auto value = node.value_exact<double>()) return Json(*value);
    if (const auto value = node.value_exact<bool>()) return Json(*value);
    return Error{ErrorCode::kConfig, fmt::format("unusable value, {}", document_.where(path)),
                 "dates and times are not used here", "write a string or a number"};
  }

 private:
  Result<Json> convert_table(const toml::table& table, const std::string& path) {
    Json object = Json::object();
    for (const auto& [key, child] : table) {
      const std::string name(key.str());
      MOTLEY_ASSIGN(object[name], convert(child, path.empty() ? name : path + "." + name));
    }
    return object;
  }

  Result<Json> convert_array(const toml::array& array, const std::string& path) {
    Json list = Json::array();
    for (const auto& child : array) {
      MOTLEY_ASSIGN(Json item, convert(child, fmt::format("{}[{}]", path, list.size())));
      list.push_back(std::move(item));
    }
    return list;
  }

  TomlDocument& document_;
};

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
  return fmt::format("{}:{}:{}", source, it->second.line, it->second.column);
}

Result<TomlDocument> parse_toml(std::string_view text, const std::string& source) {
  TomlDocument document;
  document.source = source;
  try {
    const toml::table table = toml::parse(text, source);
    MOTLEY_ASSIGN(document.root, Converter(document).convert(table, ""));
  } catch (const toml::parse_error& e) {
    const auto begin = e.source().begin;
    return Error{ErrorCode::kConfig,
                 fmt::format("bad TOML, {}:{}:{}", source, begin.line, begin.column),
                 std::string(e.description()), "correct this line"};
  }
  return document;
}

std::string closest_word(const std::string& word, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t best_distance = std::min<std::size_t>(4, word.size() / 2 + 1);
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace motley
