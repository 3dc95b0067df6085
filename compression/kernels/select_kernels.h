// SelectKernels mark the large values of a block, one bit per value, and compute the sums of error
// feedback in the same pass. The selected values are then located from the bits
// (compression/sparse/list_positions.h) while the values are in the L1 cache.
//
// A value is large if its bits without the sign are at least threshold_bits. As integers,
// magnitudes are ordered: finite ones by size, then infinity, then NaN. With a threshold of at most
// FLT_MAX, every value that is not finite is large. REQUIRES of all: threshold_bits is 1 to
// 0x7F7FFFFF; the spans of a call have one size. ⌈N / 64⌉ words are written; bits after the last
// value are 0.
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

// One value at a time: the reference, which the vector kernels match bit for bit.
[[nodiscard]] const SelectKernels& scalar_select_kernels();

// The fastest kernels that this processor supports.
[[nodiscard]] const SelectKernels& best_select_kernels();

}  // namespace motley
