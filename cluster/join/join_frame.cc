#include "cluster/join/join_frame.h"

#include <fmt/format.h>

#include "base/check.h"

namespace motley {
namespace {

constexpr std::size_t kLengthBytes = 4;
constexpr std::size_t kHeadBytes = kLengthBytes + 1 + 4;  // length, kind, channel

void put_u32(std::string& bytes, std::uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(value >> shift & 0xffU);
}

std::uint32_t get_u32(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    value |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  return value;
}

}  // namespace

std::string encode_frame(const JoinFrame& frame) {
  MOTLEY_CHECK(frame.content.size() <= kJoinBytesMax, "{} bytes", frame.content.size());
  std::string bytes;
  bytes.reserve(kHeadBytes + frame.content.size());
  put_u32(bytes, static_cast<std::uint32_t>(kHeadBytes - kLengthBytes + frame.content.size()));
  bytes += static_cast<char>(frame.kind);
  put_u32(bytes, frame.channel);
  return bytes + frame.content;
}

Result<std::optional<JoinFrame>> JoinFrameReader::next(std::size_t content_bytes_max) {
  const std::string_view left = std::string_view(bytes_).substr(begin_);
  if (left.size() < kLengthBytes) return std::optional<JoinFrame>();
  const std::size_t length = get_u32(left);
  if (length < kHeadBytes - kLengthBytes ||
      length > kHeadBytes - kLengthBytes + content_bytes_max) {
    return Error{ErrorCode::kPeer, "it violates the protocol",
                 fmt::format("a message of {} bytes", length),
                 "use the same version of Motley on every machine"};
  }
  if (left.size() < kLengthBytes + length) return std::optional<JoinFrame>();
  const auto kind = static_cast<unsigned char>(left[kLengthBytes]);
  if (kind == 0 || kind > kJoinKindMax) {
    return Error{ErrorCode::kPeer, "it violates the protocol",
                 fmt::format("a message of the unknown kind {}", kind),
                 "use the same version of Motley on every machine"};
  }
  JoinFrame frame{static_cast<JoinKind>(kind), get_u32(left.substr(kLengthBytes + 1)),
                  std::string(left.substr(kHeadBytes, kLengthBytes + length - kHeadBytes))};
  begin_ += kLengthBytes + length;
  if (begin_ == bytes_.size() || begin_ > kJoinBytesMax) {
    bytes_.erase(0, begin_);
    begin_ = 0;
  }
  return std::optional(std::move(frame));
}

}  // namespace motley
