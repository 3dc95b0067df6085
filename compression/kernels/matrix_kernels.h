// Products of a matrix with a few vectors, for low-rank approximation
// (compression/lowrank/low_rank_fit.h).
//
// A matrix is row-major without gaps; R vectors stand one behind the other. All in binary32: each
// product and each sum is rounded once and their order is part of the contract, so that every
// kernel gives the same bits. REQUIRES of all: columns is a multiple of kMatrixLanes and at most
// kMatrixSide, rank at least 1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace motley {

inline constexpr std::size_t kMatrixSide = 256;  // columns at most
inline constexpr std::size_t kMatrixLanes = 16;

struct MatrixShape {
  std::size_t rows = 0;
  std::size_t columns = 0;
};

struct MatrixKernels {
  // The largest magnitude, as the bits of a float without its sign: of numbers by size, then
  // infinity, then NaN. 0 of nothing.
  std::uint32_t (*largest_bits)(std::span<const float> values_N);

  // left[r × left_stride + i] = the sum over j of matrix[i][j] × right[r × columns + j], for each
  // row i. The sum is that of kMatrixLanes sums, of the j with the same j mod kMatrixLanes, each
  // from 0 on in rising order; these are added 8 apart, then 4, 2 and 1.
  void (*times)(const float* matrix,
                MatrixShape shape,
                const float* right,
                std::size_t rank,
                float* left,
                std::size_t left_stride);

  // right[r × columns + j] += matrix[i][j] × left[r × left_stride + i], row after row.
  void (*add_transposed_times)(const float* matrix,
                               MatrixShape shape,
                               const float* left,
                               std::size_t left_stride,
                               std::size_t rank,
                               float* right);

  // matrix[i][j] = the sum over r of left[r × left_stride + i] × right[r × columns + j], in rising
  // order.
  void (*outer)(const float* left,
                std::size_t left_stride,
                const float* right,
                std::size_t rank,
                MatrixShape shape,
                float* matrix);
};

// One value after the other: the reference.
[[nodiscard]] const MatrixKernels& scalar_matrix_kernels();

// nullptr where the processor, or the one this was compiled for, lacks them.
[[nodiscard]] const MatrixKernels* avx2_matrix_kernels();
[[nodiscard]] const MatrixKernels* avx512_matrix_kernels();

// The fastest that this processor has.
[[nodiscard]] const MatrixKernels& best_matrix_kernels();

}  // namespace motley
