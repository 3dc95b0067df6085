#include "compression/kernels/matrix_kernels.h"

#include <algorithm>
#include <array>
#include <bit>

namespace motley {
namespace {

std::uint32_t largest_bits(std::span<const float> values_N) {
  std::uint32_t largest = 0;
  for (const float value : values_N) {
    largest = std::max(largest, std::bit_cast<std::uint32_t>(value) & 0x7FFFFFFFU);
  }
  return largest;
}

void times(const float* matrix,
           MatrixShape shape,
           const float* right,
           std::size_t rank,
           float* left,
           std::size_t left_stride) {
  for (std::size_t i = 0; i < shape.rows; ++i) {
    const float* row = matrix + i * shape.columns;
    for (std::size_t r = 0; r < rank; ++r) {
      std::array<float, kMatrixLanes> sums{};
      for (std::size_t j = 0; j < shape.columns; ++j) {
        sums[j % kMatrixLanes] += row[j] * right[r * shape.columns + j];
      }
      for (std::size_t apart = kMatrixLanes / 2; apart > 0; apart /= 2) {
        for (std::size_t lane = 0; lane < apart; ++lane) sums[lane] += sums[lane + apart];
      }
      left[r * left_stride + i] = sums[0];
    }
  }
}

void add_transposed_times(const float* matrix,
                          MatrixShape shape,
                          const float* left,
                          std::size_t left_stride,
                          std::size_t rank,
                          float* right) {
  for (std::size_t i = 0; i < shape.rows; ++i) {
    for (std::size_t r = 0; r < rank; ++r) {
      for (std::size_t j = 0; j < shape.columns; ++j) {
        right[r * shape.columns + j] += matrix[i * shape.columns + j] * left[r * left_stride + i];
      }
    }
  }
}

void outer(const float* left,
           std::size_t left_stride,
           const float* right,
           std::size_t rank,
           MatrixShape shape,
           float* matrix) {
  for (std::size_t i = 0; i < shape.rows; ++i) {
    for (std::size_t j = 0; j < shape.columns; ++j) {
      float sum = left[i] * right[j];
      for (std::size_t r = 1; r < rank; ++r) {
        sum += left[r * left_stride + i] * right[r * shape.columns + j];
      }
      matrix[i * shape.columns + j] = sum;
    }
  }
}

}  // namespace

const MatrixKernels& scalar_matrix_kernels() {
  static constexpr MatrixKernels kKernels = {largest_bits, times, add_transposed_times, outer};
  return kKernels;
}

const MatrixKernels& best_matrix_kernels() {
  if (const MatrixKernels* avx512 = avx512_matrix_kernels()) return *avx512;
  const MatrixKernels* avx2 = avx2_matrix_kernels();
  return avx2 != nullptr ? *avx2 : scalar_matrix_kernels();
}

}  // namespace motley
