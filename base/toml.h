// TOML text as a Json value plus the position of each key, so that errors can name line and column.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "base/source_position.h"

namespace motley {

struct TomlDocument {
  Json root = Json::object();
  std::string source;                            // names the text in errors, usually a path
  std::map<std::string, SourcePosition> places;  // of each value: "train.lr", "machine[1].name"

  // "configs/a.toml:12:3" for a key, or only the source if the key is unknown.
  [[nodiscard]] std::string where(const std::string& key_path) const;
};

inline constexpr std::uint64_t kTomlBytesMax = 1 << 20;

// Parses TOML of at most kTomlBytesMax bytes. Rejects dates, times and multi-line strings, which
// Motley does not use, nesting deeper than 8 levels and keys of more than 100 bytes. kConfig with
// line and column on bad syntax. On success `root` is an object.
[[nodiscard]] Result<TomlDocument> parse_toml(std::string_view text, const std::string& source);

// The candidate closest to `word` (one that begins with it, or within an edit distance of 3 and
// less than half its length), or "". Returns "" for words of more than 100 bytes.
[[nodiscard]] std::string closest_word(const std::string& word,
                                       const std::vector<std::string>& candidates);

// The words as a part of a sentence: "gpipe, 1f1b or split" with the conjunction "or".
[[nodiscard]] std::string word_list(const std::vector<const char*>& words, const char* conjunction);

}  // namespace motley
