// BoundarySize: how much of a micro-batch crosses a boundary between two layers. Whoever transfers,
// prices or holds it takes the parts from here.
#pragma once

#include <compare>
#include <cstdint>

namespace motley {

struct BoundarySize {
  // Of the tensors with a gradient: encoded by the boundary's codec, there and, as the gradient,
  // back.
  std::int64_t floats = 0;
  // Of the tensors without one: transferred bit-exactly, there alone.
  std::int64_t exact_bytes = 0;

  // What comes back.
  [[nodiscard]] constexpr BoundarySize gradient() const { return {floats, 0}; }

  // In memory.
  [[nodiscard]] constexpr std::int64_t bytes() const {
    return floats * static_cast<std::int64_t>(sizeof(float)) + exact_bytes;
  }

  friend auto operator<=>(const BoundarySize&, const BoundarySize&) = default;
};

}  // namespace motley
