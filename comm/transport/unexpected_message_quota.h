// UnexpectedMessageQuota: the memory budget for one peer's early messages, those that arrive before
// their receive is posted. Guarded by its owner's mutex.
#pragma once

#include <cstdint>

namespace motley {

// Per peer, unless the plan has a smaller limit.
inline constexpr std::uint64_t kUnexpectedBytesMax = 256ULL << 20;
// Counted for each early message beside its bytes, because a peer could send many tiny ones.
inline constexpr std::uint64_t kUnexpectedMessageBytes = 1024;

class UnexpectedMessageQuota {
 public:
  explicit UnexpectedMessageQuota(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}

  // Whether the budget has space for a message of this size, which is then taken.
  [[nodiscard]] bool take(std::uint64_t message_bytes) {
    const std::uint64_t left = bytes_max_ - bytes_;
    if (left < kUnexpectedMessageBytes || message_bytes > left - kUnexpectedMessageBytes)
      return false;
    bytes_ += message_bytes + kUnexpectedMessageBytes;
    return true;
  }

  // Releases the message's space. REQUIRES: take() returned true for it.
  void give(std::uint64_t message_bytes) { bytes_ -= message_bytes + kUnexpectedMessageBytes; }

 private:
  std::uint64_t bytes_max_;
  std::uint64_t bytes_ = 0;
};

}  // namespace motley
