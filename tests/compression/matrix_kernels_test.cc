#include "compression/kernels/matrix_kernels.h"

#include <bit>
#include <cmath>
#include <cstdint>

#include "tests/compression/slices.h"
#include "tests/support/property.h"

namespace motley {
namespace {

// What this processor has besides the reference.
std::vector<MatrixKernels> vector_kernels() {
  std::vector<MatrixKernels> kernels;
  for (const MatrixKernels* some : {avx2_matrix_kernels(), avx512_matrix_kernels()}) {
    if (some != nullptr) kernels.push_back(*some);
  }
  return kernels;
}

// A matrix and vectors for both of its sides.
struct Case {
  MatrixShape shape;
  std::size_t rank = 1;
  Floats matrix, left, right;

  Case(MatrixShape of_shape, std::size_t of_rank, unsigned seed)
      : shape(of_shape),
        rank(of_rank),
        matrix(normal_slice(shape.rows * shape.columns, seed)),
        left(normal_slice(rank * shape.rows, seed + 1)),
        right(normal_slice(rank * shape.columns, seed + 2)) {}
};

Floats times(const MatrixKernels& kernels, const Case& c) {
  Floats product(c.left.size());
  kernels.times(c.matrix.data(), c.shape, c.right.data(), c.rank, product.data(), c.shape.rows);
  return product;
}

Floats add_transposed_times(const MatrixKernels& kernels, const Case& c) {
  Floats sum = c.right;
  kernels.add_transposed_times(c.matrix.data(), c.shape, c.left.data(), c.shape.rows, c.rank,
                               sum.data());
  return sum;
}

Floats outer(const MatrixKernels& kernels, const Case& c) {
  Floats product(c.matrix.size());
  kernels.outer(c.left.data(), c.shape.rows, c.right.data(), c.rank, c.shape, product.data());
  return product;
}

TEST(MatrixKernels, MultiplyAsMatricesDo) {
  const Case c({5, 32}, 3, 1);
  const Floats left = times(scalar_matrix_kernels(), c);
  const Floats right = add_transposed_times(scalar_matrix_kernels(), c);
  const Floats both = outer(scalar_matrix_kernels(), c);
  for (std::size_t r = 0; r < c.rank; ++r) {
    for (std::size_t i = 0; i < c.shape.rows; ++i) {
      double sum = 0;
      for (std::size_t j = 0; j < 32; ++j)
        sum += double{c.matrix[i * 32 + j]} * c.right[r * 32 + j];
      EXPECT_NEAR(left[r * 5 + i], sum, 1e-5);
    }
    for (std::size_t j = 0; j < 32; ++j) {
      double sum = c.right[r * 32 + j];
      for (std::size_t i = 0; i < 5; ++i) sum += double{c.matrix[i * 32 + j]} * c.left[r * 5 + i];
      EXPECT_NEAR(right[r * 32 + j], sum, 1e-5);
    }
  }
  for (std::size_t k = 0; k < both.size(); ++k) {
    double sum = 0;
    for (std::size_t r = 0; r < 3; ++r) {
      sum += double{c.left[r * 5 + k / 32]} * c.right[r * 32 + k % 32];
    }
    EXPECT_NEAR(both[k], sum, 1e-5);
  }
}

RC_GTEST_PROP(MatrixKernels, VectorKernelsEqualTheReferenceBitForBit, ()) {
  const auto columns = 16 * *rc::gen::inRange<std::size_t>(1, 17);
  const auto rows = *rc::gen::inRange<std::size_t>(0, 20);
  const auto rank = *rc::gen::inRange<std::size_t>(1, 11);
  const Case c({rows, columns}, rank, *rc::gen::inRange(0U, 1000U));
  const MatrixKernels& reference = scalar_matrix_kernels();
  for (const MatrixKernels& kernels : vector_kernels()) {
    RC_ASSERT(times(kernels, c) == times(reference, c));
    RC_ASSERT(add_transposed_times(kernels, c) == add_transposed_times(reference, c));
    RC_ASSERT(outer(kernels, c) == outer(reference, c));
  }
}

RC_GTEST_PROP(MatrixKernels, FindTheLargestBitsOfAnything, ()) {
  const auto bits = *rc::gen::arbitrary<std::vector<std::uint32_t>>();
  Floats values;
  std::uint32_t largest = 0;
  for (const std::uint32_t some : bits) {
    values.push_back(std::bit_cast<float>(some));
    largest = std::max(largest, some & 0x7FFFFFFFU);
  }
  RC_ASSERT(scalar_matrix_kernels().largest_bits(values) == largest);
  for (const MatrixKernels& kernels : vector_kernels()) {
    RC_ASSERT(kernels.largest_bits(values) == largest);
  }
}

}  // namespace
}  // namespace motley
