// A position in a text, for messages.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace motley {

// Both count from 1; columns count UTF-8 characters.
struct SourcePosition {
  int line = 0;
  int column = 0;

  friend bool operator==(const SourcePosition&, const SourcePosition&) = default;
};

// The position of the byte at `offset`, or of the end if the text is shorter.
[[nodiscard]] inline SourcePosition position_of(std::string_view text, std::size_t offset) {
  SourcePosition place{1, 1};
  for (const char c : text.substr(0, offset)) {
    const bool continues = (static_cast<unsigned char>(c) & 0xc0) == 0x80;
    if (c == '\n') {
      place = {place.line + 1, 1};
    } else if (!continues) {
      ++place.column;
    }
  }
  return place;
}

// "configs/a.toml:12:3".
[[nodiscard]] inline std::string at_position(const std::string& source, SourcePosition place) {
  return fmt::format("{}:{}:{}", source, place.line, place.column);
}

}  // namespace motley
