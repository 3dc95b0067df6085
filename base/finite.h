// Infinities and NaNs among floats.
#pragma once

#include <cstddef>
#include <span>

namespace motley {

// How many of the values are an infinity or a NaN.
[[nodiscard]] std::size_t count_not_finite(std::span<const float> values);

}  // namespace motley
