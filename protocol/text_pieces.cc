#include "protocol/text_pieces.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/json.h"
#include "protocol/message_fields.h"

namespace motley {
namespace {

// Even if each byte needs six in JSON (control characters), a piece stays below a line's 4 MiB.
constexpr std::size_t kPieceBytes = 512 << 10;
constexpr std::size_t kTextBytesMax = std::size_t{256} << 20;
constexpr std::size_t kPiecesMax = 4 * kTextBytesMax / kPieceBytes;
constexpr const char* kPieceSource = "a piece of a message";

// Does not cut within a UTF-8 character.
std::size_t piece_end(const std::string& text, std::size_t begin) {
  std::size_t end = std::min(text.size(), begin + kPieceBytes);
  while (end < text.size() && end > begin + 1 &&
         (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80)
    --end;
  return end;
}

}  // namespace

std::vector<Json> in_pieces(const std::string& text) {
  std::vector<std::pair<std::size_t, std::size_t>> spans;
  std::size_t begin = 0;
  do {
    const std::size_t end = piece_end(text, begin);
    spans.emplace_back(begin, end);
    begin = end;
  } while (begin < text.size());
  std::vector<Json> pieces;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    pieces.push_back({{"part", i},
                      {"of", spans.size()},
                      {"text", text.substr(spans[i].first, spans[i].second - spans[i].first)}});
  }
  return pieces;
}

Result<std::optional<std::string>> PieceJoiner::add(const Json& piece) {
  std::string so_far = std::exchange(text_, {});
  const std::size_t expected = std::exchange(next_, 0);
  if (!piece.is_object()) return unusable_message(kPieceSource, "it is not an object");
  MOTLEY_ASSIGN(const std::int64_t part, json_get<std::int64_t>(piece, "part", kPieceSource));
  MOTLEY_ASSIGN(const std::int64_t of, json_get<std::int64_t>(piece, "of", kPieceSource));
  MOTLEY_ASSIGN(const std::string text, json_get<std::string>(piece, "text", kPieceSource));
  if (part != static_cast<std::int64_t>(expected) || of <= part ||
      of > static_cast<std::int64_t>(kPiecesMax)) {
    return unusable_message(kPieceSource,
                            fmt::format("piece {} of {} in place of piece {}", part, of, expected));
  }
  if (text.size() > kTextBytesMax - so_far.size())
    return unusable_message(kPieceSource, "it is too long");
  so_far += text;
  if (part + 1 == of) return std::optional(std::move(so_far));
  text_ = std::move(so_far);
  next_ = expected + 1;
  return std::optional<std::string>();
}

}  // namespace motley
