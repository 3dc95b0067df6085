// One panel of a matrix product: the innermost part of fixed_order_product.h, which exists as a
// scalar reference and as a vector kernel with the same bits.
#pragma once

#include <cstdint>

namespace motley {

struct ProductPanel {
  static constexpr std::int64_t kWidth = 16;

  const float* a = nullptr;  // rows of k values
  const float* b = nullptr;  // k rows of kWidth values
  float* c = nullptr;        // the panel's first column in the product
  std::int64_t rows = 0;     // of a and c
  std::int64_t k = 0;
  std::int64_t columns = 0;   // of the panel that exist in c; at most kWidth
  std::int64_t c_stride = 0;  // between rows of c
};

// Sets columns [0, columns) of each row of c: sums over k in ascending order, from 0.
using ComputePanel = void (*)(const ProductPanel& panel);

void compute_panel_reference(const ProductPanel& panel);

// The fastest one for this processor.
[[nodiscard]] ComputePanel best_compute_panel();

}  // namespace motley
