#include "compression/lowrank/low_rank_fit.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "base/philox.h"

namespace motley {
namespace {

// A third brings what is left out of a gradient nearer to the least possible by 1 or 2 % only.
constexpr int kIterations = 2;

constexpr std::uint64_t kStartKey = 0x6C6F7772616E6B;  // any; the signs are not told to anyone

// Matrices are taken times a power of two, so that squares neither overflow nor vanish; one of
// these is itself a float, and so is its inverse.
constexpr int kExponentMax = 100;

// What of its length a vector must keep when the others are taken out of it. Below, it is what
// their rounding left.
constexpr float kKeptShareSquared = 1e-10F;

// The values as a matrix whose last row, where it is not whole, is filled up.
class FilledMatrix {
 public:
  FilledMatrix(const MatrixKernels& kernels, std::span<const float> values_N, MatrixShape shape)
      : kernels_(kernels), values_N_(values_N), shape_(shape) {
    std::ranges::copy(values_N.subspan(whole_rows() * shape.columns), last_row_.begin());
  }

  // left = M right.
  void times(const float* right, std::size_t rank, float* left) const {
    kernels_.times(values_N_.data(), {whole_rows(), shape_.columns}, right, rank, left,
                   shape_.rows);
    if (whole_rows() == shape_.rows) return;
    kernels_.times(last_row_.data(), {1, shape_.columns}, right, rank, left + whole_rows(),
                   shape_.rows);
  }

  // right = Mᵀ left.
  void transposed_times(const float* left, std::size_t rank, float* right) const {
    std::fill_n(right, rank * shape_.columns, 0.0F);
    kernels_.add_transposed_times(values_N_.data(), {whole_rows(), shape_.columns}, left,
                                  shape_.rows, rank, right);
    if (whole_rows() == shape_.rows) return;
    kernels_.add_transposed_times(last_row_.data(), {1, shape_.columns}, left + whole_rows(),
                                  shape_.rows, rank, right);
  }

 private:
  [[nodiscard]] std::size_t whole_rows() const { return values_N_.size() / shape_.columns; }

  const MatrixKernels& kernels_;
  std::span<const float> values_N_;
  MatrixShape shape_;
  std::array<float, kMatrixSide> last_row_{};
};

// Summed as MatrixKernels::times does, so that it is fast and the same everywhere.
float dot(std::span<const float> a_N, std::span<const float> b_N) {
  std::array<float, kMatrixLanes> sums{};
  const std::size_t whole = a_N.size() - a_N.size() % kMatrixLanes;
  for (std::size_t i = 0; i < whole; i += kMatrixLanes) {
    for (std::size_t lane = 0; lane < kMatrixLanes; ++lane) {
      sums[lane] += a_N[i + lane] * b_N[i + lane];
    }
  }
  for (std::size_t i = whole; i < a_N.size(); ++i) sums[i - whole] += a_N[i] * b_N[i];
  for (std::size_t apart = kMatrixLanes / 2; apart > 0; apart /= 2) {
    for (std::size_t lane = 0; lane < apart; ++lane) sums[lane] += sums[lane + apart];
  }
  return sums[0];
}

void scale(std::span<float> vector_N, float factor) {
  for (float& value : vector_N) value *= factor;
}

// Gram-Schmidt over `rank` vectors of `size`, one behind the other, twice each: once leaves as much
// of the others as rounding is of what was taken out.
void make_orthonormal(float* vectors, std::size_t size, std::size_t rank) {
  for (std::size_t r = 0; r < rank; ++r) {
    const std::span<float> vector_N(vectors + r * size, size);
    const float before = dot(vector_N, vector_N);
    for (int pass = 0; pass < 2; ++pass) {
      for (std::size_t other = 0; other < r; ++other) {
        const std::span<const float> other_N(vectors + other * size, size);
        const float along = dot(other_N, vector_N);
        for (std::size_t i = 0; i < size; ++i) vector_N[i] -= along * other_N[i];
      }
    }
    const float after = dot(vector_N, vector_N);
    scale(vector_N, after > kKeptShareSquared * before ? 1 / std::sqrt(after) : 0.0F);
  }
}

// ±magnitude, of which a vector of 128 takes one block of random bits.
void fill_with_signs(float* vectors, std::size_t size, std::size_t rank, float magnitude) {
  for (std::size_t r = 0; r < rank; ++r) {
    PhiloxBlock bits{};
    for (std::size_t i = 0; i < size; ++i) {
      if (i % 128 == 0) bits = philox4x32(kStartKey, r, i / 128);
      const bool negative = (bits[i % 128 / 32] >> (i % 32) & 1U) != 0;
      vectors[r * size + i] = negative ? -magnitude : magnitude;
    }
  }
}

}  // namespace

void fit_low_rank(const MatrixKernels& kernels,
                  std::span<const float> values_N,
                  std::uint32_t largest_bits,
                  MatrixShape shape,
                  std::size_t rank,
                  LowRankFactors& factors) {
  const FilledMatrix matrix(kernels, values_N, shape);
  const std::size_t left_size = rank * shape.rows;
  const std::size_t right_size = rank * shape.columns;
  int exponent = 0;
  std::frexp(std::bit_cast<float>(largest_bits), &exponent);
  factors.exponent = std::clamp(exponent, -kExponentMax, kExponentMax);
  const float smaller = std::ldexp(1.0F, -factors.exponent);
  float* left = factors.left.data();
  float* right = factors.right.data();
  fill_with_signs(left, shape.rows, rank, smaller);
  for (int iteration = 0; iteration < kIterations; ++iteration) {
    matrix.transposed_times(left, rank, right);
    make_orthonormal(right, shape.columns, rank);
    scale({right, right_size}, smaller);
    matrix.times(right, rank, left);
    make_orthonormal(left, shape.rows, rank);
    scale({left, left_size}, smaller);
  }
  matrix.transposed_times(left, rank, right);
  scale({left, left_size}, std::ldexp(1.0F, factors.exponent));
}

}  // namespace motley
