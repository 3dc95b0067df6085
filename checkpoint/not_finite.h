// Infinities and NaNs among floats that are read from a file or go into one.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace motley {

// How many of the values are an infinity or a NaN. By the bits, so that no option of the compiler
// can take the answer for granted: an exponent of all ones is one of them. Without a branch, as
// fast as the memory gives the values.
[[nodiscard]] inline std::size_t count_not_finite(std::span<const float> values) {
  constexpr std::uint32_t kExponent = 0x7F800000U;
  std::size_t count = 0;
  for (const float value : values) {
    count += (std::bit_cast<std::uint32_t>(value) & kExponent) == kExponent ? 1U : 0U;
  }
  return count;
}

}  // namespace motley
