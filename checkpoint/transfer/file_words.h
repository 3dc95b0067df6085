// The messages of a file transfer: serialisation, and parsing of untrusted bytes
// (docs/formats/frame.md, "Part of a file").
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "comm/transport/buffer.h"

namespace motley {

enum class PartKind : std::uint8_t { kMoreFollow = 0, kLast = 1, kGivenUp = 2 };

struct FilePart {
  PartKind kind = PartKind::kMoreFollow;
  std::span<const std::byte> content;  // of the file; in part 0 its size; in the buffer
  Error why;                           // kGivenUp: kCorrupt, with the sender's error text
};

enum class AnswerKind : std::uint8_t { kWritten = 0, kNotWritten = 1, kGone = 2 };

struct PartAnswer {
  AnswerKind kind = AnswerKind::kWritten;
  std::uint32_t took_us = 0;  // kWritten: from arrival to written
  Error why;                  // else: kCorrupt, with the receiver's error text
};

// Precedes the content of a part.
inline constexpr std::size_t kPartHeadBytes = 1;
// The size of the file, in part 0.
inline constexpr std::size_t kFileSizeBytes = 8;

// Buffer sizes for every part with content up to this size, and for every answer.
[[nodiscard]] std::size_t part_room(std::size_t content_bytes_max);
[[nodiscard]] std::size_t answer_room();

// Makes the buffer's payload a part with content of this size, and returns the content's span.
// REQUIRES: the buffer is large enough.
std::span<std::byte> begin_part(Buffer& buffer, PartKind kind, std::size_t content_bytes);

[[nodiscard]] Buffer given_up_part(const Error& why);
[[nodiscard]] Buffer answer_buffer(const PartAnswer& answer);

// kCorrupt for invalid bytes.
[[nodiscard]] Result<FilePart> read_part(std::span<const std::byte> payload);
[[nodiscard]] Result<PartAnswer> read_answer(std::span<const std::byte> payload);

}  // namespace motley
