// Pseudorandom numbers of tests that write data: the same in every run.
#pragma once

#include <cstdint>

namespace motley {

class FileDraw {
 public:
  explicit FileDraw(std::uint64_t seed = 7) : state_(seed) {}

  // From 0 to below a limit.
  std::uint32_t below(std::uint32_t limit) {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<std::uint32_t>((state_ >> 33) % limit);
  }

  // From 0 to below 1.
  double share() { return static_cast<double>(below(1U << 24)) / (1U << 24); }

 private:
  std::uint64_t state_;
};

}  // namespace motley
