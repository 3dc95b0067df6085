// SelectKernels find which values of a block are large, one bit a value, and the sums of error
// feedback on the way, so that selecting costs no pass of its own. What is kept is then found from
// the bits (compression/sparse/list_places.h) while the values are in the nearest cache.
//
// A value is large where its bits without the sign are at least threshold_bits. As integers,
// magnitudes are ordered by size, then infinity, then NaN: with a threshold of at most FLT_MAX all
// that is not finite is large. REQUIRES of all: threshold_bits is 1 to 0x7F7FFFFF; the spans of a
// call have one size. ⌈N / 64⌉ words are written; bits behind the last value are 0.
#pragma once

#include <cstdint>
#include <span>

namespace motley {

struct SelectKernels {
  void (*mark)(std::span<const float> values_N, std::uint32_t threshold_bits, std::uint64_t* words);

  // residual_N += gradient_N; marks the residual.
  void (*add_and_mark)(std::span<const float> gradient_N,
                       std::span<float> residual_N,
                       std::uint32_t threshold_bits,
                       std::uint64_t* words);

  // velocity_N = momentum velocity_N + gradient_N; residual_N += velocity_N; marks the residual.
  // Each product and each sum is rounded once.
  void (*gather_and_mark)(std::span<const float> gradient_N,
                          float momentum,
                          std::span<float> velocity_N,
                          std::span<float> residual_N,
                          std::uint32_t threshold_bits,
                          std::uint64_t* words);
};

// One value after the other: the reference, which the vector kernels equal bit for bit.
[[nodiscard]] const SelectKernels& scalar_select_kernels();

// The fastest that this processor has.
[[nodiscard]] const SelectKernels& best_select_kernels();

}  // namespace motley
