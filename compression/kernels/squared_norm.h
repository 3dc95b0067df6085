// The squared L2 norm of a gradient.
#pragma once

#include <span>

namespace motley {

// The sum of the squares, in double: value i is added to lane i mod 16, then the lanes are added in
// order. The result depends on the span's bounds, so call it on whole parameters. Cannot overflow
// for finite values; NaN or infinite if a value is.
[[nodiscard]] double squared_norm(std::span<const float> values_N);

}  // namespace motley
