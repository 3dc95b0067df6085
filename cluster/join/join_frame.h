// The messages between a head and a machine that has joined (docs/formats/join.md): the length,
// the kind, the channel and the content. A channel is one command or one transfer of files; the
// head numbers them. Pure: bytes are passed in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace motley {

// The letters are those of docs/formats/join.md.
enum class JoinKind : std::uint8_t {
  kHello = 1,      // of the joining machine: JSON
  kWelcome = 2,    // JSON
  kRefusal = 3,    // JSON
  kStart = 4,      // of a command: its words as JSON
  kInput = 5,      // bytes for its standard input; empty: the input has ended
  kOutput = 6,     // bytes of its standard output; empty: the output has ended
  kErrors = 7,     // the same of its standard error
  kCredit = 8,     // the receiver of a stream has passed bytes on: JSON
  kKill = 9,       // ends the command at once, or the transfer
  kExit = 10,      // the command or the transfer has ended: JSON
  kPing = 11,      // shows that the sender is alive
  kManifest = 12,  // files that the head offers: JSON
  kWant = 13,      // a piece of a file that is missing: JSON
  kPiece = 14,     // its bytes
  kLeave = 15,     // the machine leaves the run
  kEnd = 16,       // the head has ended: JSON
};

inline constexpr std::uint8_t kJoinKindMax = 16;
// Of the content of a message.
inline constexpr std::size_t kJoinBytesMax = std::size_t{64} << 10;
// Before the other end is authenticated.
inline constexpr std::size_t kGreetingBytesMax = std::size_t{4} << 10;

struct JoinFrame {
  JoinKind kind = JoinKind::kPing;
  std::uint32_t channel = 0;  // 0 = of the connection
  std::string content;

  friend bool operator==(const JoinFrame&, const JoinFrame&) = default;
};

// REQUIRES: the content has at most kJoinBytesMax bytes.
[[nodiscard]] std::string encode_frame(const JoinFrame& frame);

// Divides received bytes into messages.
class JoinFrameReader {
 public:
  void add(std::string_view bytes) { bytes_ += bytes; }

  // The next whole message; nothing if more bytes must arrive. kPeer if the bytes are not a message
  // with at most `content_bytes_max` bytes of content; the reader is then unusable.
  [[nodiscard]] Result<std::optional<JoinFrame>> next(std::size_t content_bytes_max);

 private:
  std::string bytes_;
  std::size_t begin_ = 0;  // earlier bytes were returned
};

}  // namespace motley
