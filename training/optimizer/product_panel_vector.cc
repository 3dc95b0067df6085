// Tiles of some rows of the panel are computed in registers.
#include <cstddef>
#include <cstring>
#include <utility>

#include "compression/kernels/vector_targets.h"
#include "training/optimizer/product_panel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "training/optimizer/product_panel_vector.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include "compression/kernels/vector_rows.h"

HWY_BEFORE_NAMESPACE();

namespace motley::HWY_NAMESPACE {
namespace {

#if MOTLEY_VECTOR_TARGET

constexpr auto kWidth = static_cast<std::size_t>(ProductPanel::kWidth);
constexpr std::size_t kVectors = kWidth / kLanes;
// Twelve sums hide the latency of an addition and leave registers for operands.
constexpr std::int64_t kTileRows = 12 / kVectors;

// Rows [row, row + kRows) of the panel. I numbers the vectors of the tile, row by row.
template <std::int64_t kRows, std::size_t... I>
HWY_INLINE void compute_tile(const ProductPanel& panel,
                             std::int64_t row,
                             std::index_sequence<I...> /*vectors*/) {
  const float* const a = panel.a + row * panel.k;
  Row sums[sizeof...(I)] = {(static_cast<void>(I), hn::Zero(F32()))...};
  for (std::int64_t k = 0; k < panel.k; ++k) {
    const float* const b = panel.b + k * ProductPanel::kWidth;
    ((sums[I] = hn::Add(
          sums[I], hn::Mul(hn::Set(F32(), a[static_cast<std::int64_t>(I / kVectors) * panel.k + k]),
                           load_row(b + I % kVectors * kLanes)))),
     ...);
  }
  alignas(64) float tile[sizeof...(I) * kLanes];
  (store_row(sums[I], tile + I * kLanes), ...);
  for (std::int64_t r = 0; r < kRows; ++r) {
    std::memcpy(panel.c + (row + r) * panel.c_stride, tile + r * ProductPanel::kWidth,
                static_cast<std::size_t>(panel.columns) * sizeof(float));
  }
}

void compute_panel_vector(const ProductPanel& panel) {
  std::int64_t row = 0;
  for (; row + kTileRows <= panel.rows; row += kTileRows) {
    compute_tile<kTileRows>(panel, row, std::make_index_sequence<kTileRows * kVectors>());
  }
  for (; row < panel.rows; ++row) {
    compute_tile<1>(panel, row, std::make_index_sequence<kVectors>());
  }
}

ComputePanel panel_kernel() {
  return compute_panel_vector;
}

#else

ComputePanel panel_kernel() {
  return compute_panel_reference;
}

#endif

}  // namespace
}  // namespace motley::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace motley {

HWY_EXPORT(panel_kernel);

ComputePanel best_compute_panel() {
  return HWY_DYNAMIC_DISPATCH(panel_kernel)();
}

}  // namespace motley

#endif
