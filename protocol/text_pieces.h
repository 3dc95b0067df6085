// Splits a text that may exceed the protocol's line length into pieces that do not.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"

namespace motley {

// {"part": 0, "of": 3, "text": "…"}, in order; at least one.
[[nodiscard]] std::vector<Json> in_pieces(const std::string& text);

// Joins the pieces. One owner thread.
class PieceJoiner {
 public:
  // Returns the whole text with its last piece. kCorrupt if the piece is invalid or not the next
  // one, or if the text would exceed 256 MiB; the next text then starts anew.
  [[nodiscard]] Result<std::optional<std::string>> add(const Json& piece);

 private:
  std::string text_;
  std::size_t next_ = 0;
};

}  // namespace motley
