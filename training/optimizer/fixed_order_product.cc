// The columns of a product are computed in panels of kPanel. The second operand's part for a panel
// is first copied to contiguous memory.
#include "training/optimizer/fixed_order_product.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <vector>

#include "training/optimizer/product_panel.h"

namespace motley {
namespace {

constexpr std::int64_t kPanel = ProductPanel::kWidth;

// The rows [first, first + columns) of a_MK as columns; the rest of the panel is 0.
void pack_rows(const float* a,
               std::int64_t first,
               std::int64_t columns,
               std::int64_t k,
               std::vector<float>& packed) {
  packed.assign(static_cast<std::size_t>(k * kPanel), 0.0F);
  for (std::int64_t j = 0; j < columns; ++j) {
    const float* const from = a + (first + j) * k;
    for (std::int64_t i = 0; i < k; ++i) packed[static_cast<std::size_t>(i * kPanel + j)] = from[i];
  }
}

void pack_columns(const float* b,
                  std::int64_t first,
                  std::int64_t columns,
                  std::int64_t k,
                  std::int64_t n,
                  std::vector<float>& packed) {
  packed.assign(static_cast<std::size_t>(k * kPanel), 0.0F);
  for (std::int64_t i = 0; i < k; ++i) {
    std::memcpy(packed.data() + i * kPanel, b + i * n + first,
                static_cast<std::size_t>(columns) * sizeof(float));
  }
}

std::int64_t panels_of(std::int64_t columns) {
  return (columns + kPanel - 1) / kPanel;
}

}  // namespace

void compute_panel_reference(const ProductPanel& panel) {
  for (std::int64_t row = 0; row < panel.rows; ++row) {
    std::array<float, ProductPanel::kWidth> sums{};
    for (std::int64_t k = 0; k < panel.k; ++k) {
      const float factor = panel.a[row * panel.k + k];
      const float* const b = panel.b + k * kPanel;
      for (std::size_t j = 0; j < sums.size(); ++j) sums[j] += factor * b[j];
    }
    std::memcpy(panel.c + row * panel.c_stride, sums.data(),
                static_cast<std::size_t>(panel.columns) * sizeof(float));
  }
}

void fixed_order_product(const float* a,
                         const float* b,
                         float* c,
                         std::int64_t m,
                         std::int64_t k,
                         std::int64_t n,
                         const InParts& in_parts) {
  const ComputePanel compute = best_compute_panel();
  in_parts(panels_of(n), 1, [&](std::int64_t first, std::int64_t last) {
    std::vector<float> packed;
    for (std::int64_t p = first; p < last; ++p) {
      const std::int64_t column = p * kPanel;
      const std::int64_t columns = std::min(kPanel, n - column);
      pack_columns(b, column, columns, k, n, packed);
      compute({a, packed.data(), c + column, m, k, columns, n});
    }
  });
}

void fixed_order_gram(
    const float* a, float* c, std::int64_t m, std::int64_t k, const InParts& in_parts) {
  const ComputePanel compute = best_compute_panel();
  const std::int64_t panels = panels_of(m);
  in_parts(panels, 1, [&](std::int64_t first, std::int64_t last) {
    std::vector<float> packed;
    for (std::int64_t number = first; number < last; ++number) {
      // Later panels have more rows: early and late ones alternate, so that threads have equal
      // work.
      const std::int64_t p = number % 2 == 0 ? number / 2 : panels - 1 - number / 2;
      const std::int64_t column = p * kPanel;
      const std::int64_t columns = std::min(kPanel, m - column);
      pack_rows(a, column, columns, k, packed);
      compute({a, packed.data(), c + column, column + columns, k, columns, m});
    }
  });
  in_parts(m, kPanel, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      for (std::int64_t j = 0; j < i; ++j) c[i * m + j] = c[j * m + i];
    }
  });
}

}  // namespace motley
