// The messages of a file transfer: serialisation, and parsing of untrusted bytes
// (docs/formats/frame.md, "Part of a file").
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "comm/transport/buffer.h"

namespace motley {

enum class PartKind : std::uint8_t { kMoreFollow = 0, kLast = 1, kAborted = 2 };

struct FilePart {
  PartKind kind = PartKind::kMoreFollow;
  std::span<const std::byte> content;  // of the file; in part 0 its size; in the buffer
  Error why;                           // kAborted: kCorrupt, with the sender's error text
};

enum class AckKind : std::uint8_t { kWritten = 0, kNotWritten = 1, kGone = 2 };

struct PartAck {
  AckKind kind = AckKind::kWritten;
  std::uint32_t took_us = 0;  // kWritten: from arrival to written
  Error why;                  // else: kCorrupt, with the receiver's error text
};

// Precedes the content of a part.
inline constexpr std::size_t kPartHeadBytes = 1;
// The size of the file, in part 0.
inline constexpr std::size_t kFileSizeBytes = 8;

// Buffer sizes for every part with content up to this size, and for every answer.
[[nodiscard]] std::size_t part_buffer_bytes(std::size_t content_bytes_max);
[[nodiscard]] std::size_t ack_buffer_bytes();

// Makes the buffer's payload a part with content of this size, and returns the content's span.
// REQUIRES: the buffer is large enough.
std::span<std::byte> begin_part(Buffer& buffer, PartKind kind, std::size_t content_bytes);

[[nodiscard]] Buffer aborted_part(const Error& why);
[[nodiscard]] Buffer ack_buffer(const PartAck& answer);

// kCorrupt for invalid bytes.
[[nodiscard]] Result<FilePart> read_part(std::span<const std::byte> payload);
[[nodiscard]] Result<PartAck> read_ack(std::span<const std::byte> payload);

}  // namespace motley
