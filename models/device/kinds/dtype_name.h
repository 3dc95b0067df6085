#pragma once

#include <string_view>

#include <c10/core/ScalarType.h>

namespace motley {

// "fp32", "bf16" and "fp16", as in train.precision; "" for any other type.
[[nodiscard]] constexpr std::string_view dtype_name(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return "fp32";
    case at::kBFloat16:
      return "bf16";
    case at::kHalf:
      return "fp16";
    default:
      return "";
  }
}

}  // namespace motley
