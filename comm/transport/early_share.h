// EarlyShare: how much memory one peer's messages may take before they are asked for. What the
// mutex of its owner guards.
#pragma once

#include <cstdint>

namespace motley {

// Of one peer, where no plan says less.
inline constexpr std::uint64_t kEarlyBytesMax = 256ULL << 20;
// What an early message counts beside its bytes: a peer could send many that have hardly any.
inline constexpr std::uint64_t kEarlyMessageBytes = 1024;

class EarlyShare {
 public:
  explicit EarlyShare(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}

  // Whether there is room for a message of so many bytes; it is taken then.
  [[nodiscard]] bool take(std::uint64_t message_bytes) {
    const std::uint64_t left = bytes_max_ - bytes_;
    if (left < kEarlyMessageBytes || message_bytes > left - kEarlyMessageBytes) return false;
    bytes_ += message_bytes + kEarlyMessageBytes;
    return true;
  }

  // The message is no longer kept. REQUIRES: take() was true for it.
  void give(std::uint64_t message_bytes) { bytes_ -= message_bytes + kEarlyMessageBytes; }

 private:
  std::uint64_t bytes_max_;
  std::uint64_t bytes_ = 0;
};

}  // namespace motley
