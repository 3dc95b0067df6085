#pragma once

#include <sstream>
#include <string>
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

// Whether a list such as "bf16 fp16" contains the type.
[[nodiscard]] inline bool names_dtype(std::string_view list, at::ScalarType type) {
  std::istringstream words{std::string(list)};
  for (std::string word; words >> word;) {
    if (word == dtype_name(type)) return true;
  }
  return false;
}

}  // namespace motley
