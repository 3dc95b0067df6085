#include "training/optimizer/fixed_order_product.h"

#include <cmath>
#include <cstddef>
#include <vector>

#include <gtest/gtest.h>

#include "base/philox.h"
#include "tests/compression/target_kernels.h"
#include "training/optimizer/product_panel.h"

namespace motley {
namespace {

using Floats = std::vector<float>;

Floats drawn(std::int64_t count, std::uint64_t stream) {
  Floats values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = 2 * to_unit_float(philox4x32(3, stream, i)[0]) - 1;
  }
  return values;
}

// The contract, value by value.
Floats by_definition(
    const Floats& a, const Floats& b, std::int64_t m, std::int64_t k, std::int64_t n) {
  Floats c(static_cast<std::size_t>(m * n));
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (std::int64_t l = 0; l < k; ++l) {
        const float term =
            a[static_cast<std::size_t>(i * k + l)] * b[static_cast<std::size_t>(l * n + j)];
        sum += term;
      }
      c[static_cast<std::size_t>(i * n + j)] = sum;
    }
  }
  return c;
}

// The last grain first, then everything before it.
void last_first(std::int64_t count,
                std::int64_t grain,
                const std::function<void(std::int64_t, std::int64_t)>& body) {
  const std::int64_t last = (count - 1) / grain * grain;
  body(last, count);
  if (last > 0) body(0, last);
}

struct Sizes {
  std::int64_t m, k, n;
};

constexpr Sizes kSizes[] = {{1, 1, 1}, {2, 3, 5}, {16, 16, 16}, {13, 40, 33}, {50, 7, 31}};

TEST(FixedOrderProduct, AddsInTheDefinedOrder) {
  for (const auto& [m, k, n] : kSizes) {
    const Floats a = drawn(m * k, 1);
    const Floats b = drawn(k * n, 2);
    Floats c(static_cast<std::size_t>(m * n), NAN);
    fixed_order_product(a.data(), b.data(), c.data(), m, k, n, in_one_part);
    EXPECT_EQ(c, by_definition(a, b, m, k, n)) << m << " x " << k << " x " << n;
    Floats in_parts(c.size(), NAN);
    fixed_order_product(a.data(), b.data(), in_parts.data(), m, k, n, last_first);
    EXPECT_EQ(in_parts, c);
  }
}

TEST(FixedOrderGram, IsTheProductWithTheTranspose) {
  for (const auto& [m, k, n] : kSizes) {
    const Floats a = drawn(m * k, 1);
    Floats transpose(a.size());
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < k; ++j) {
        transpose[static_cast<std::size_t>(j * m + i)] = a[static_cast<std::size_t>(i * k + j)];
      }
    }
    Floats c(static_cast<std::size_t>(m * m), NAN);
    fixed_order_gram(a.data(), c.data(), m, k, in_one_part);
    EXPECT_EQ(c, by_definition(a, transpose, m, k, m)) << m << " x " << k;
    Floats in_parts(c.size(), NAN);
    fixed_order_gram(a.data(), in_parts.data(), m, k, last_first);
    EXPECT_EQ(in_parts, c);
  }
}

// Every number of rows and columns that ends in the middle of a tile.
TEST(ProductPanel, HasTheBitsOfTheReferenceInEveryInstructionSet) {
  const auto kernels = kernels_of_every_target(best_compute_panel);
  constexpr std::int64_t kDepth = 29;
  const Floats b = drawn(kDepth * ProductPanel::kWidth, 4);
  for (std::int64_t rows = 0; rows <= 26; ++rows) {
    const Floats a = drawn(rows * kDepth, 5);
    for (const std::int64_t columns : {1, 7, 8, 15, 16}) {
      const auto product = [&](ComputePanel compute) {
        Floats c(static_cast<std::size_t>(rows * 20), -1.0F);
        compute({a.data(), b.data(), c.data(), rows, kDepth, columns, 20});
        return c;
      };
      const Floats expected = product(compute_panel_reference);
      for (const ComputePanel kernel : kernels) {
        ASSERT_EQ(product(kernel), expected) << rows << " rows, " << columns << " columns";
      }
    }
  }
}

}  // namespace
}  // namespace motley
