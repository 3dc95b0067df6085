// The low-rank approximation of a matrix: M ≈ P Qᵀ with a few columns.
//
// P spans nearly the directions in which M is largest, found by subspace iteration: from vectors of
// random signs, alternately Mᵀ and M times what there is, made orthonormal each time (Halko,
// Martinsson, Tropp, "Finding structure with randomness", 2011, algorithm 4.4; PowerSGD, NeurIPS
// 2019, goes half such a step from the last message's Q). Q = Mᵀ P is then what of M lies in those
// directions, so that P Qᵀ is never larger than M. Nothing is kept between the matrices: on the
// gradients of a GPT the second iteration comes nearer to the best P Qᵀ than a first one that
// starts from the step before, and a sender has no state to save.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "compression/kernels/matrix_kernels.h"

namespace motley {

inline constexpr std::size_t kRankMax = 32;

// P Qᵀ is the sum over r of 2^exponent × left(r) × right(r)ᵀ. A scratch of 64 KiB.
struct LowRankFactors {
  int exponent = 0;
  std::array<float, kRankMax * kMatrixSide> left;   // R vectors, of a value for each row
  std::array<float, kRankMax * kMatrixSide> right;  // R vectors, of a value for each column
};

// Fits the values as rows of shape.columns; the last row is filled up with zeros. The vectors of
// `left` are orthonormal, or 0 where the matrix has a lower rank than asked for. The same values
// give the same bits with all kernels. REQUIRES: largest_bits is that of values_N, and finite;
// 1 <= rank <= kRankMax; shape.rows <= kMatrixSide; the kernels' requirements.
void fit_low_rank(const MatrixKernels& kernels,
                  std::span<const float> values_N,
                  std::uint32_t largest_bits,
                  MatrixShape shape,
                  std::size_t rank,
                  LowRankFactors& factors);

}  // namespace motley
