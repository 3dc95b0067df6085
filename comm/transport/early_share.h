// EarlyShare: the memory budget for one peer's early messages, those that arrive before their
// receive is posted. Guarded by its owner's mutex.
#pragma once

#include <cstdint>

namespace motley {

// Per peer, unless the plan has a smaller limit.
inline constexpr std::uint64_t kEarlyBytesMax = 256ULL << 20;
// Counted for each early message beside its bytes, because a peer could send many tiny ones.
inline constexpr std::uint64_t kEarlyMessageBytes = 1024;

class EarlyShare {
 public:
  explicit EarlyShare(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}

  // Whether the budget has space for a message of this size, which is then taken.
  [[nodiscard]] bool take(std::uint64_t message_bytes) {
    const std::uint64_t left = bytes_max_ - bytes_;
    if (left < kEarlyMessageBytes || message_bytes > left - kEarlyMessageBytes) return false;
    bytes_ += message_bytes + kEarlyMessageBytes;
    return true;
  }

  // Releases the message's space. REQUIRES: take() returned true for it.
  void give(std::uint64_t message_bytes) { bytes_ -= message_bytes + kEarlyMessageBytes; }

 private:
  std::uint64_t bytes_max_;
  std::uint64_t bytes_ = 0;
};

}  // namespace motley
