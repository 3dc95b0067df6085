// BoundarySize: the size of the data that a micro-batch sends across a boundary between two layers.
// Transfers, the cost model and buffers all use it.
#pragma once

#include <compare>
#include <cstdint>

namespace motley {

struct BoundarySize {
  // Elements of the tensors with a gradient. The boundary's codec encodes them forward, and their
  // gradient backward.
  std::int64_t floats = 0;
  // Bytes of the tensors without a gradient: transferred bit-exactly, forward only.
  std::int64_t exact_bytes = 0;

  // The size of the gradient.
  [[nodiscard]] constexpr BoundarySize gradient() const { return {floats, 0}; }

  // The size in memory, with floats as fp32.
  [[nodiscard]] constexpr std::int64_t bytes() const {
    return floats * static_cast<std::int64_t>(sizeof(float)) + exact_bytes;
  }

  friend auto operator<=>(const BoundarySize&, const BoundarySize&) = default;
};

}  // namespace motley
