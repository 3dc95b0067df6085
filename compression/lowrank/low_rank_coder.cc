#include "compression/lowrank/low_rank_coder.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "compression/kernels/sum_kernels.h"

namespace motley {
namespace {

static_assert(std::endian::native == std::endian::little, "wire values are little-endian");

constexpr std::uint32_t kInfinity = 0x7F800000;
constexpr std::size_t kScaleBytes = 4;

// Of a scale: no subnormals, and what is finite stays so, also the sum of kRankMax products.
constexpr int kScaleExponentMin = -126;
constexpr int kScaleExponentMax = 115;

// What is read from a message at once: 8 KiB, which the nearest cache holds beside the factors.
constexpr std::size_t kPieceRows = 8;

// Scales the vectors of the factors' right side, so that the largest magnitude of each is from 1/2
// to below 1, and writes by how much.
void write_scales(LowRankFactors& factors,
                  std::size_t columns,
                  std::size_t rank,
                  const MatrixKernels& kernels,
                  std::byte* wire_B) {
  for (std::size_t r = 0; r < rank; ++r) {
    const std::span<float> right_N(factors.right.data() + r * columns, columns);
    int exponent = 0;
    const float largest = std::bit_cast<float>(kernels.largest_bits(right_N));
    std::frexp(largest, &exponent);
    const int scale_exponent =
        std::clamp(factors.exponent + exponent, kScaleExponentMin, kScaleExponentMax);
    const float scale = largest == 0 ? 0.0F : std::ldexp(1.0F, scale_exponent);
    std::memcpy(wire_B + r * kScaleBytes, &scale, kScaleBytes);
    const float factor = std::ldexp(1.0F, std::min(factors.exponent - scale_exponent, -exponent));
    for (float& value : right_N) value *= factor;
  }
}

// What says that a matrix is not finite.
void fill_not_finite(LowRankFactors& factors,
                     MatrixShape shape,
                     std::size_t rank,
                     std::byte* wire_B) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (std::size_t r = 0; r < rank; ++r) std::memcpy(wire_B + r * kScaleBytes, &kNan, kScaleBytes);
  std::fill_n(factors.left.begin(), rank * shape.rows, 0.0F);
  std::fill_n(factors.right.begin(), rank * shape.columns, 0.0F);
}

// Calls use(first, count) for each matrix of a slice of `count` values.
template <class Use>
void for_matrices(std::size_t count, const Use& use) {
  for (std::size_t first = 0; first < count; first += kMatrixValues) {
    use(first, std::min(count - first, kMatrixValues));
  }
}

}  // namespace

MatrixShape low_rank_shape(std::size_t count) {
  std::size_t columns = kMatrixLanes;
  while (columns * columns < count) columns *= 2;
  return {(count + columns - 1) / columns, columns};
}

LowRankCoder::LowRankCoder(std::size_t rank,
                           const FixedSizeFormat& factors,
                           const MatrixKernels& kernels)
    : rank_(rank), format_(factors), kernels_(kernels) {
  MOTLEY_CHECK(1 <= rank && rank <= kRankMax, "rank {}", rank);
}

bool LowRankCoder::plain(std::size_t count) const {
  const MatrixShape shape = low_rank_shape(count);
  return 2 * rank_ * (shape.rows + shape.columns) > count;
}

std::size_t LowRankCoder::matrix_bytes(std::size_t count) const {
  if (plain(count)) return format_.bytes(count);
  const MatrixShape shape = low_rank_shape(count);
  return rank_ * kScaleBytes + format_.bytes(rank_ * shape.rows) +
         format_.bytes(rank_ * shape.columns);
}

std::size_t LowRankCoder::bytes(std::size_t count) const {
  const std::size_t last = count % kMatrixValues;
  return count / kMatrixValues * matrix_bytes(kMatrixValues) + (last > 0 ? matrix_bytes(last) : 0);
}

void LowRankCoder::encode_matrix(std::span<const float> values_N, std::byte* wire_B) const {
  const MatrixShape shape = low_rank_shape(values_N.size());
  const std::uint32_t largest_bits = kernels_.largest_bits(values_N);
  LowRankFactors factors;
  if (largest_bits < kInfinity) {
    fit_low_rank(kernels_, values_N, largest_bits, shape, rank_, factors);
    write_scales(factors, shape.columns, rank_, kernels_, wire_B);
  } else {
    fill_not_finite(factors, shape, rank_, wire_B);
  }
  const std::size_t left_size = rank_ * shape.rows;
  std::byte* left_B = wire_B + rank_ * kScaleBytes;
  format_.encode(std::span(factors.left).first(left_size), left_B);
  format_.encode(std::span(factors.right).first(rank_ * shape.columns),
                 left_B + format_.bytes(left_size));
}

template <class Use>
void LowRankCoder::read_matrix(const std::byte* wire_B, std::size_t count, const Use& use) const {
  const MatrixShape shape = low_rank_shape(count);
  const std::size_t left_size = rank_ * shape.rows;
  const std::byte* left_B = wire_B + rank_ * kScaleBytes;
  LowRankFactors factors;
  format_.decode(left_B, std::span(factors.left).first(left_size));
  format_.decode(left_B + format_.bytes(left_size),
                 std::span(factors.right).first(rank_ * shape.columns));
  for (std::size_t r = 0; r < rank_; ++r) {
    float scale = 0;
    std::memcpy(&scale, wire_B + r * kScaleBytes, kScaleBytes);
    for (std::size_t j = 0; j < shape.columns; ++j) factors.right[r * shape.columns + j] *= scale;
  }
  std::array<float, kPieceRows * kMatrixSide> piece_N;
  for (std::size_t row = 0; row < shape.rows; row += kPieceRows) {
    const std::size_t rows = std::min(shape.rows - row, kPieceRows);
    const std::size_t first = row * shape.columns;
    kernels_.outer(factors.left.data() + row, shape.rows, factors.right.data(), rank_,
                   {rows, shape.columns}, piece_N.data());
    use(std::span<const float>(piece_N).first(std::min(count - first, rows * shape.columns)),
        first);
  }
}

void LowRankCoder::encode(std::span<const float> values_N, std::byte* wire_B) const {
  for_matrices(values_N.size(), [&](std::size_t first, std::size_t count) {
    const auto matrix_N = values_N.subspan(first, count);
    plain(count) ? format_.encode(matrix_N, wire_B) : encode_matrix(matrix_N, wire_B);
    wire_B += matrix_bytes(count);
  });
}

void LowRankCoder::decode(const std::byte* wire_B, std::span<float> values_N) const {
  for_matrices(values_N.size(), [&](std::size_t first, std::size_t count) {
    const auto matrix_N = values_N.subspan(first, count);
    if (plain(count)) {
      format_.decode(wire_B, matrix_N);
    } else {
      read_matrix(wire_B, count, [&](std::span<const float> piece_N, std::size_t at) {
        std::ranges::copy(piece_N, matrix_N.begin() + static_cast<std::ptrdiff_t>(at));
      });
    }
    wire_B += matrix_bytes(count);
  });
}

void LowRankCoder::decode_add(const std::byte* wire_B, std::span<float> sum_N) const {
  const SumKernels& sums = best_sum_kernels();
  for_matrices(sum_N.size(), [&](std::size_t first, std::size_t count) {
    const auto matrix_N = sum_N.subspan(first, count);
    if (plain(count)) {
      format_.decode_add(wire_B, matrix_N);
    } else {
      read_matrix(wire_B, count, [&](std::span<const float> piece_N, std::size_t at) {
        sums.add(piece_N, matrix_N.subspan(at, piece_N.size()));
      });
    }
    wire_B += matrix_bytes(count);
  });
}

void LowRankCoder::encode_feedback(std::span<const float> gradient_N,
                                   std::span<float> residual_N,
                                   std::byte* wire_B) const {
  const SumKernels& sums = best_sum_kernels();
  for_matrices(residual_N.size(), [&](std::size_t first, std::size_t count) {
    const auto matrix_N = residual_N.subspan(first, count);
    if (plain(count)) {
      format_.encode_feedback(gradient_N.subspan(first, count), matrix_N, wire_B);
    } else {
      sums.add(gradient_N.subspan(first, count), matrix_N);
      encode_matrix(matrix_N, wire_B);
      read_matrix(wire_B, count, [&](std::span<const float> piece_N, std::size_t at) {
        sums.subtract_sent(piece_N, matrix_N.subspan(at, piece_N.size()));
      });
    }
    wire_B += matrix_bytes(count);
  });
}

}  // namespace motley
