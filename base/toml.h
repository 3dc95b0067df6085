// TOML text as a Json value plus the place of each key, so that errors can say line and column.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "base/source_place.h"

namespace motley {

struct TomlDocument {
  Json root = Json::object();
  std::string source;                         // names the text in errors, usually a path
  std::map<std::string, SourcePlace> places;  // of each value: "train.lr", "machine[1].name"

  // "configs/a.toml:12:3" for a key, or just the source when the key is unknown.
  [[nodiscard]] std::string where(const std::string& key_path) const;
};

inline constexpr std::uint64_t kTomlBytesMax = 1 << 20;

// Parses TOML of at most kTomlBytesMax bytes. Dates, times and strings over several lines are
// refused: nothing in Motley uses them; and so are nesting deeper than 8 levels and keys of more
// than 100 bytes. kConfig with line and column on bad syntax. On success `root` is an object.
[[nodiscard]] Result<TomlDocument> parse_toml(std::string_view text, const std::string& source);

// The candidate closest to `word` (one that begins with it, or at an edit distance of at most 3 and
// less than half its length), or "".
// Words of more than 100 bytes are close to nothing.
[[nodiscard]] std::string closest_word(const std::string& word,
                                       const std::vector<std::string>& candidates);

}  // namespace motley
