// Buffer: owned bytes for one message, with space for a frame header before the payload, so that
// header and payload are sent as one piece without a copy.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/wire_sizes.h"

namespace motley {

class Buffer {
 public:
  Buffer() = default;
  // Allocates a header and `payload_bytes_max` bytes; 64-byte aligned, uninitialised. The payload
  // is empty until set_payload_bytes().
  explicit Buffer(std::size_t payload_bytes_max);
  Buffer(Buffer&&) noexcept;
  Buffer& operator=(Buffer&&) noexcept;
  ~Buffer();

  [[nodiscard]] std::size_t payload_bytes_max() const { return payload_bytes_max_; }

  [[nodiscard]] std::size_t payload_bytes() const { return payload_bytes_; }

  // REQUIRES: bytes <= payload_bytes_max().
  void set_payload_bytes(std::size_t bytes);

  [[nodiscard]] std::span<std::byte> payload();  // payload_bytes() long
  [[nodiscard]] std::span<const std::byte> payload() const;
  [[nodiscard]] std::span<std::byte> payload_space();  // payload_bytes_max() long
  [[nodiscard]] std::span<std::byte> header();         // kFrameHeaderBytes long
  [[nodiscard]] std::span<const std::byte> header() const;
  // Header and payload, as sent.
  [[nodiscard]] std::span<std::byte> message();
  // Header and all payload space, as passed to a receive.
  [[nodiscard]] std::span<std::byte> message_space();

 private:
  struct Free {
    void operator()(std::byte* bytes) const;
  };

  std::unique_ptr<std::byte, Free> bytes_;
  std::size_t payload_bytes_max_ = 0;
  std::size_t payload_bytes_ = 0;
};

// Returns a buffer with a copy of these bytes as its payload, and no further space.
[[nodiscard]] Buffer buffer_with(std::span<const std::byte> payload);

}  // namespace motley
