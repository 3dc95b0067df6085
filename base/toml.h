// TOML text as a Json value plus the place of each key, so that errors can say line and column.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace motley {

struct SourcePlace {
  int line = 0;
  int column = 0;
};

struct TomlDocument {
  Json root = Json::object();
  std::string source;                         // names the text in errors, usually a path
  std::map<std::string, SourcePlace> places;  // of each value: "train.lr", "machine[1].name"

  // "configs/a.toml:12:3" for a key, or just the source when the key is unknown.
  [[nodiscard]] std::string where(const std::string& key_path) const;
};

// Parses TOML. Dates and times are refused: nothing in Motley uses them.
// kConfig with line and column on bad syntax. On success `root` is an object.
[[nodiscard]] Result<TomlDocument> parse_toml(std::string_view text, const std::string& source);

// The candidate closest to `word` (edit distance at most 3 and less than half its length), or "".
[[nodiscard]] std::string closest_word(const std::string& word,
                                       const std::vector<std::string>& candidates);

}  // namespace motley
