// The sum of the squares of a gradient's values.
#pragma once

#include <span>

namespace motley {

// Sum of the squares, in double: value i is added to lane i mod 16, then the lanes are added in
// order. The result depends on where the span begins and ends, so call it on whole parameters.
// Cannot overflow for finite values; NaN or infinite when a value is.
[[nodiscard]] double squared_norm(std::span<const float> values_N);

}  // namespace motley
