// The rotation of a block before 4-bit quantisation. It spreads every value over all positions of
// the block, so that one outlier does not determine the scale of 127 other values.
//
// It includes a fixed pattern of signs, because the plain transform would concentrate the values'
// mean in one position. The pattern is a quadratic form of the bits of the index. Its own transform
// is 0 or ±16, so that a mean, or any other basis function of the transform, is spread over 64
// positions. No pattern of 128 signs has a transform with a smaller largest entry.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace motley {

inline constexpr std::size_t kBlockValues = 128;

// ±magnitude by index: negative where b0 b1 + b2 b3 + b4 b5 is odd, with bk bit k of the index.
template <class Number>
[[nodiscard]] constexpr std::array<Number, kBlockValues> spreading_signs(Number magnitude) {
  std::array<Number, kBlockValues> signs_N{};
  for (std::size_t i = 0; i < kBlockValues; ++i) {
    const std::size_t pairs = i & (i >> 1);  // bit k: bk b(k+1)
    const std::size_t odd = (pairs ^ (pairs >> 2) ^ (pairs >> 4)) & 1;
    signs_N[i] = odd != 0 ? Number(-magnitude) : magnitude;
  }
  return signs_N;
}

// The encoding signs include the factor 1/128, an exact power of two, which makes the rotated
// values means that cannot overflow. The decoding signs are integers, as is the computation with
// them.
alignas(64) inline constexpr auto kEncodeSigns = spreading_signs(1.0F / kBlockValues);
alignas(64) inline constexpr auto kDecodeSigns = spreading_signs(std::int16_t{1});

// The Walsh-Hadamard transform in place: entry (i, j) is (-1)^(number of common set bits of i and
// j); applied twice it is 128 times the identity. Strides ascend: for floats the order of the sums
// is part of the format.
template <class Number>
void hadamard_transform(std::array<Number, kBlockValues>& values_N) {
  for (std::size_t stride = 1; stride < kBlockValues; stride *= 2) {
    for (std::size_t first = 0; first < kBlockValues; first += 2 * stride) {
      for (std::size_t i = first; i < first + stride; ++i) {
        const Number sum = values_N[i] + values_N[i + stride];
        values_N[i + stride] = values_N[i] - values_N[i + stride];
        values_N[i] = sum;
      }
    }
  }
}

}  // namespace motley
