// One text for AVX2 and AVX-512, in the compilers' own vectors of 16 floats: two registers of the
// one, one of the other. Up to four vectors go along a matrix at once, a few rows at a time, so
// that what is loaded is used often; how many rows is what a processor's registers have room for,
// and changes no bit.
#include "compression/kernels/matrix_kernels.h"

#if defined(__x86_64__)

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

// Into functions that carry a target.
#define MOTLEY_INLINE __attribute__((always_inline))

namespace motley {
namespace {

using Lanes [[gnu::vector_size(64)]] = float;
using HalfLanes [[gnu::vector_size(32)]] = float;
using QuarterLanes [[gnu::vector_size(16)]] = float;

constexpr std::size_t kRankTile = 4;

// Vectors are no arguments or results by value: how they are passed depends on the processor.
[[gnu::always_inline]] inline void load_lanes(const float* from, Lanes& lanes) {
  std::memcpy(&lanes, from, sizeof lanes);
}

[[gnu::always_inline]] inline void store_lanes(const Lanes& lanes, float* to) {
  std::memcpy(to, &lanes, sizeof lanes);
}

// As the contract of times() says.
[[gnu::always_inline]] inline float sum_of_lanes(const Lanes& lanes) {
  HalfLanes eight[2];
  std::memcpy(eight, &lanes, sizeof lanes);
  const HalfLanes eight_sum = eight[0] + eight[1];
  QuarterLanes four[2];
  std::memcpy(four, &eight_sum, sizeof eight_sum);
  const QuarterLanes four_sum = four[0] + four[1];
  return (four_sum[0] + four_sum[2]) + (four_sum[1] + four_sum[3]);
}

// kRows × kRank sums at once.
template <std::size_t kRows, std::size_t kRank>
[[gnu::always_inline]] inline void times_tile(const float* matrix,
                                              std::size_t columns,
                                              const float* right,
                                              float* left,
                                              std::size_t left_stride) {
  Lanes sums[kRows][kRank] = {};
  for (std::size_t j = 0; j < columns; j += kMatrixLanes) {
    Lanes factors[kRank];
#pragma GCC unroll 4
    for (std::size_t r = 0; r < kRank; ++r) load_lanes(right + r * columns + j, factors[r]);
#pragma GCC unroll 4
    for (std::size_t i = 0; i < kRows; ++i) {
      Lanes row;
      load_lanes(matrix + i * columns + j, row);
#pragma GCC unroll 4
      for (std::size_t r = 0; r < kRank; ++r) sums[i][r] += row * factors[r];
    }
  }
#pragma GCC unroll 4
  for (std::size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (std::size_t r = 0; r < kRank; ++r) left[r * left_stride + i] = sum_of_lanes(sums[i][r]);
  }
}

template <std::size_t kRows, std::size_t kRank>
[[gnu::always_inline]] inline void add_transposed_tile(const float* matrix,
                                                       std::size_t columns,
                                                       const float* left,
                                                       std::size_t left_stride,
                                                       float* right) {
  for (std::size_t j = 0; j < columns; j += kMatrixLanes) {
    Lanes rows[kRows];
#pragma GCC unroll 4
    for (std::size_t i = 0; i < kRows; ++i) load_lanes(matrix + i * columns + j, rows[i]);
#pragma GCC unroll 4
    for (std::size_t r = 0; r < kRank; ++r) {
      Lanes sum;
      load_lanes(right + r * columns + j, sum);
#pragma GCC unroll 4
      for (std::size_t i = 0; i < kRows; ++i) sum += rows[i] * left[r * left_stride + i];
      store_lanes(sum, right + r * columns + j);
    }
  }
}

// kFirst: what the matrix held is overwritten, else added to.
template <std::size_t kRows, std::size_t kRank, bool kFirst>
[[gnu::always_inline]] inline void outer_tile(const float* left,
                                              std::size_t left_stride,
                                              const float* right,
                                              std::size_t columns,
                                              float* matrix) {
  for (std::size_t j = 0; j < columns; j += kMatrixLanes) {
    Lanes factors[kRank];
#pragma GCC unroll 4
    for (std::size_t r = 0; r < kRank; ++r) load_lanes(right + r * columns + j, factors[r]);
#pragma GCC unroll 4
    for (std::size_t i = 0; i < kRows; ++i) {
      float* place = matrix + i * columns + j;
      Lanes sum;
      if constexpr (kFirst) {
        sum = factors[0] * left[i];
      } else {
        load_lanes(place, sum);
        sum += factors[0] * left[i];
      }
#pragma GCC unroll 4
      for (std::size_t r = 1; r < kRank; ++r) sum += factors[r] * left[r * left_stride + i];
      store_lanes(sum, place);
    }
  }
}

// Calls use(row, rows) for tiles of kRows rows, then for single ones.
template <std::size_t kRows, class Use>
[[gnu::always_inline]] inline void for_row_tiles(std::size_t rows, const Use& use) {
  std::size_t i = 0;
  for (; i + kRows <= rows; i += kRows) use(i, std::integral_constant<std::size_t, kRows>());
  for (; i < rows; ++i) use(i, std::integral_constant<std::size_t, 1>());
}

// Calls use(first, count) for the vectors, kRankTile at a time and then the rest.
template <class Use>
[[gnu::always_inline]] inline void for_rank_tiles(std::size_t rank, const Use& use) {
  std::size_t r = 0;
  for (; r + kRankTile <= rank; r += kRankTile) use(r, std::integral_constant<std::size_t, 4>());
  if (rank - r == 3) use(r, std::integral_constant<std::size_t, 3>());
  if (rank - r == 2) use(r, std::integral_constant<std::size_t, 2>());
  if (rank - r == 1) use(r, std::integral_constant<std::size_t, 1>());
}

template <std::size_t kRows>
[[gnu::always_inline]] inline void times_each(const float* matrix,
                                              MatrixShape shape,
                                              const float* right,
                                              std::size_t rank,
                                              float* left,
                                              std::size_t left_stride) {
  const std::size_t columns = shape.columns;
  for_rank_tiles(rank, [&](std::size_t r, auto tile_rank) MOTLEY_INLINE {
    for_row_tiles<kRows>(shape.rows, [&](std::size_t i, auto tile_rows) MOTLEY_INLINE {
      times_tile<tile_rows(), tile_rank()>(matrix + i * columns, columns, right + r * columns,
                                           left + r * left_stride + i, left_stride);
    });
  });
}

template <std::size_t kRows>
[[gnu::always_inline]] inline void add_transposed_times_each(const float* matrix,
                                                             MatrixShape shape,
                                                             const float* left,
                                                             std::size_t left_stride,
                                                             std::size_t rank,
                                                             float* right) {
  const std::size_t columns = shape.columns;
  for_rank_tiles(rank, [&](std::size_t r, auto tile_rank) MOTLEY_INLINE {
    for_row_tiles<kRows>(shape.rows, [&](std::size_t i, auto tile_rows) MOTLEY_INLINE {
      add_transposed_tile<tile_rows(), tile_rank()>(matrix + i * columns, columns,
                                                    left + r * left_stride + i, left_stride,
                                                    right + r * columns);
    });
  });
}

template <std::size_t kRows>
[[gnu::always_inline]] inline void outer_each(const float* left,
                                              std::size_t left_stride,
                                              const float* right,
                                              std::size_t rank,
                                              MatrixShape shape,
                                              float* matrix) {
  const std::size_t columns = shape.columns;
  for_rank_tiles(rank, [&](std::size_t r, auto tile_rank) MOTLEY_INLINE {
    for_row_tiles<kRows>(shape.rows, [&](std::size_t i, auto tile_rows) MOTLEY_INLINE {
      const float* tile_left = left + r * left_stride + i;
      const float* tile_right = right + r * columns;
      float* tile = matrix + i * columns;
      if (r == 0) {
        outer_tile<tile_rows(), tile_rank(), true>(tile_left, left_stride, tile_right, columns,
                                                   tile);
      } else {
        outer_tile<tile_rows(), tile_rank(), false>(tile_left, left_stride, tile_right, columns,
                                                    tile);
      }
    });
  });
}

[[gnu::always_inline]] inline std::uint32_t largest_bits_of_each(std::span<const float> values_N) {
  std::uint32_t largest = 0;
  for (const float value : values_N) {
    largest = std::max(largest, std::bit_cast<std::uint32_t>(value) & 0x7FFFFFFFU);
  }
  return largest;
}

// Rows at a time: of as many sums, or factors, as the registers hold.
[[gnu::target("avx2")]] std::uint32_t largest_bits_avx2(std::span<const float> values_N) {
  return largest_bits_of_each(values_N);
}

[[gnu::target("avx2")]] void times_avx2(const float* matrix,
                                        MatrixShape shape,
                                        const float* right,
                                        std::size_t rank,
                                        float* left,
                                        std::size_t left_stride) {
  times_each<1>(matrix, shape, right, rank, left, left_stride);
}

[[gnu::target("avx2")]] void add_transposed_times_avx2(const float* matrix,
                                                       MatrixShape shape,
                                                       const float* left,
                                                       std::size_t left_stride,
                                                       std::size_t rank,
                                                       float* right) {
  add_transposed_times_each<2>(matrix, shape, left, left_stride, rank, right);
}

[[gnu::target("avx2")]] void outer_avx2(const float* left,
                                        std::size_t left_stride,
                                        const float* right,
                                        std::size_t rank,
                                        MatrixShape shape,
                                        float* matrix) {
  outer_each<2>(left, left_stride, right, rank, shape, matrix);
}

[[gnu::target("avx512f")]] std::uint32_t largest_bits_avx512(std::span<const float> values_N) {
  return largest_bits_of_each(values_N);
}

[[gnu::target("avx512f")]] void times_avx512(const float* matrix,
                                             MatrixShape shape,
                                             const float* right,
                                             std::size_t rank,
                                             float* left,
                                             std::size_t left_stride) {
  times_each<4>(matrix, shape, right, rank, left, left_stride);
}

[[gnu::target("avx512f")]] void add_transposed_times_avx512(const float* matrix,
                                                            MatrixShape shape,
                                                            const float* left,
                                                            std::size_t left_stride,
                                                            std::size_t rank,
                                                            float* right) {
  add_transposed_times_each<4>(matrix, shape, left, left_stride, rank, right);
}

[[gnu::target("avx512f")]] void outer_avx512(const float* left,
                                             std::size_t left_stride,
                                             const float* right,
                                             std::size_t rank,
                                             MatrixShape shape,
                                             float* matrix) {
  outer_each<4>(left, left_stride, right, rank, shape, matrix);
}

}  // namespace

const MatrixKernels* avx2_matrix_kernels() {
  static constexpr MatrixKernels kKernels = {largest_bits_avx2, times_avx2,
                                             add_transposed_times_avx2, outer_avx2};
  return __builtin_cpu_supports("avx2") ? &kKernels : nullptr;
}

const MatrixKernels* avx512_matrix_kernels() {
  static constexpr MatrixKernels kKernels = {largest_bits_avx512, times_avx512,
                                             add_transposed_times_avx512, outer_avx512};
  return __builtin_cpu_supports("avx512f") ? &kKernels : nullptr;
}

}  // namespace motley

#else

namespace motley {

const MatrixKernels* avx2_matrix_kernels() {
  return nullptr;
}

const MatrixKernels* avx512_matrix_kernels() {
  return nullptr;
}

}  // namespace motley

#endif
