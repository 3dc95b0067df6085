// A text that may be longer than a line of the protocol, in pieces that are not.
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

// Puts them together again. One owner thread.
class PieceJoiner {
 public:
  // The whole text with its last piece. kCorrupt for what is no piece, or not the next one, and
  // where all of them would take more than 256 MiB; the next text begins afresh then.
  [[nodiscard]] Result<std::optional<std::string>> add(const Json& piece);

 private:
  std::string text_;
  std::size_t next_ = 0;
};

}  // namespace motley
