// Infinities and NaNs among floats read from or written to files.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace motley {

// The number of values that are an infinity or a NaN. Tests the bits (an exponent of all ones), so
// that no compiler option such as -ffast-math removes the test. Branch-free, limited by memory
// bandwidth.
[[nodiscard]] inline std::size_t count_not_finite(std::span<const float> values) {
  constexpr std::uint32_t kExponent = 0x7F800000U;
  std::size_t count = 0;
  for (const float value : values) {
    count += (std::bit_cast<std::uint32_t>(value) & kExponent) == kExponent ? 1U : 0U;
  }
  return count;
}

}  // namespace motley
