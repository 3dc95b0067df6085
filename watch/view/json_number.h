// Numbers in the documents of views: NaN and infinities become null.
#pragma once

#include <cmath>
#include <type_traits>

#include "base/json.h"

namespace motley {

template <class Number>
[[nodiscard]] Json number_or_null(Number value) {
  if constexpr (std::is_floating_point_v<Number>) {
    return std::isfinite(value) ? Json(value) : Json(nullptr);
  } else {
    return value;
  }
}

}  // namespace motley
