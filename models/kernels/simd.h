// Shared by the kernels: compilation of a function for several instruction sets, and fixed lanes.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

// Before a function: compiles it for each set; the loader picks the best that the CPU has.
// Sanitizers instrument the resolvers, which run before the sanitizer is ready.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define MOTLEY_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define MOTLEY_CLONES
#endif
#define MOTLEY_INLINE inline __attribute__((always_inline))

namespace motley::kernels {

// Sums and maxima use this many lanes on every CPU, so that the order of additions is fixed.
inline constexpr int kLanes = 16;
using Lanes = std::array<float, kLanes>;

// Halves the lanes until one is left: the order does not depend on the instruction set.
template <class Combine>
MOTLEY_INLINE float fold(Lanes lanes, Combine combine) {
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) lanes[i] = combine(lanes[i], lanes[i + half]);
  }
  return lanes[0];
}

// e^x to 2 ulp by Cephes' polynomial, without branches so that loops over it vectorise.
// Clamped to the range of normal floats; NaN stays NaN.
MOTLEY_INLINE float exp_fast(float x) {
  x = x < -87.0F ? -87.0F : x;
  x = x > 88.0F ? 88.0F : x;
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer
  const float rounded = x * 1.44269504F + kRound;
  const float n = rounded - kRound;
  const float r = (x - n * 0.693359375F) - n * -2.12194440e-4F;
  float y = 1.9875691500e-4F;
  y = y * r + 1.3981999507e-3F;
  y = y * r + 8.3334519073e-3F;
  y = y * r + 4.1665795894e-2F;
  y = y * r + 1.6666665459e-1F;
  y = y * r + 5.0000001201e-1F;
  y = y * (r * r) + r + 1.0F;
  // The low bits of `rounded` hold n; as an exponent they represent 2^n.
  return y * std::bit_cast<float>((std::bit_cast<std::uint32_t>(rounded) + 127U) << 23);
}

}  // namespace motley::kernels
