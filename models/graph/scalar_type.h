// LibTorch's name of a package's number type.
#pragma once

#include <c10/core/ScalarType.h>

#include "models/package/tensor_spec.h"

namespace motley {

[[nodiscard]] inline c10::ScalarType scalar_type(NumberType type) {
  switch (type) {
    case NumberType::kFloat32:
      return c10::ScalarType::Float;
    case NumberType::kInt64:
      return c10::ScalarType::Long;
    case NumberType::kBool:
      return c10::ScalarType::Bool;
  }
  return c10::ScalarType::Float;
}

}  // namespace motley
