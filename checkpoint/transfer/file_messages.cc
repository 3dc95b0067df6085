#include "checkpoint/transfer/file_messages.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace motley {
namespace {

constexpr std::size_t kTextBytesMax = 600;
constexpr std::size_t kTexts = 3;  // what, cause, remedy
constexpr std::size_t kWordsBytesMax = kTexts * (sizeof(std::uint16_t) + kTextBytesMax);

Error malformed(const char* what) {
  return {ErrorCode::kCorrupt, std::string("a malformed ") + what + " came",
          "this version does not write such bytes",
          "start all ranks from the same version of Motley"};
}

// Short enough including the sign that excerpt() adds when it cuts.
std::string cut(std::string_view text) {
  constexpr std::size_t kSignBytes = 3;
  return excerpt(text, text.size() <= kTextBytesMax ? kTextBytesMax : kTextBytesMax - kSignBytes);
}

Buffer with_words(std::uint8_t kind, const Error& error) {
  Buffer buffer(1 + kWordsBytesMax);
  std::span<std::byte> space = buffer.payload_space();
  const auto put = [&](const void* bytes, std::size_t count) {
    std::memcpy(space.data(), bytes, count);
    space = space.subspan(count);
  };
  put(&kind, sizeof kind);
  for (const std::string* text : {&error.what, &error.cause, &error.remedy}) {
    const std::string shortened = cut(*text);
    const auto length = static_cast<std::uint16_t>(shortened.size());
    put(&length, sizeof length);
    put(shortened.data(), shortened.size());
  }
  buffer.set_payload_bytes(buffer.payload_bytes_max() - space.size());
  return buffer;
}

// nullopt if the bytes are not a valid error text.
std::optional<Error> read_words(std::span<const std::byte> bytes) {
  Error error{ErrorCode::kCorrupt, "", "", ""};
  for (std::string* text : {&error.what, &error.cause, &error.remedy}) {
    std::uint16_t length = 0;
    if (bytes.size() < sizeof length) return {};
    std::memcpy(&length, bytes.data(), sizeof length);
    bytes = bytes.subspan(sizeof length);
    if (length > kTextBytesMax || length > bytes.size()) return {};
    *text = excerpt({reinterpret_cast<const char*>(bytes.data()), length}, kTextBytesMax);
    bytes = bytes.subspan(length);
  }
  if (!bytes.empty() || error.what.empty()) return {};
  return error;
}

}  // namespace

std::size_t part_buffer_bytes(std::size_t content_bytes_max) {
  return kPartHeadBytes + std::max({content_bytes_max, kFileSizeBytes, kWordsBytesMax});
}

std::size_t ack_buffer_bytes() {
  return 1 + std::max(sizeof(std::uint32_t), kWordsBytesMax);
}

std::span<std::byte> begin_part(Buffer& buffer, PartKind kind, std::size_t content_bytes) {
  buffer.set_payload_bytes(kPartHeadBytes + content_bytes);
  buffer.payload().front() = static_cast<std::byte>(kind);
  return buffer.payload().subspan(kPartHeadBytes);
}

Buffer aborted_part(const Error& why) {
  return with_words(static_cast<std::uint8_t>(PartKind::kAborted), why);
}

Buffer ack_buffer(const PartAck& answer) {
  if (answer.kind != AckKind::kWritten) {
    return with_words(static_cast<std::uint8_t>(answer.kind), answer.why);
  }
  Buffer buffer(1 + sizeof answer.took_us);
  buffer.set_payload_bytes(buffer.payload_bytes_max());
  buffer.payload().front() = static_cast<std::byte>(AckKind::kWritten);
  std::memcpy(buffer.payload().data() + 1, &answer.took_us, sizeof answer.took_us);
  return buffer;
}

Result<FilePart> read_part(std::span<const std::byte> payload) {
  if (payload.empty()) return malformed("part of a file");
  const auto kind = static_cast<PartKind>(payload.front());
  const auto content = payload.subspan(kPartHeadBytes);
  switch (kind) {
    case PartKind::kMoreFollow:
    case PartKind::kLast:
      if (content.empty()) return malformed("part of a file");
      return FilePart{kind, content, {}};
    case PartKind::kAborted: {
      auto why = read_words(content);
      if (!why) return malformed("part of a file");
      return FilePart{kind, {}, std::move(*why)};
    }
  }
  return malformed("part of a file");
}

Result<PartAck> read_ack(std::span<const std::byte> payload) {
  if (payload.empty()) return malformed("answer");
  PartAck answer{static_cast<AckKind>(payload.front())};
  const auto content = payload.subspan(1);
  switch (answer.kind) {
    case AckKind::kWritten:
      if (content.size() != sizeof answer.took_us) return malformed("answer");
      std::memcpy(&answer.took_us, content.data(), sizeof answer.took_us);
      return answer;
    case AckKind::kNotWritten:
    case AckKind::kGone: {
      auto why = read_words(content);
      if (!why) return malformed("answer");
      answer.why = std::move(*why);
      return answer;
    }
  }
  return malformed("answer");
}

}  // namespace motley
