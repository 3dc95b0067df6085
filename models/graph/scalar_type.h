// The LibTorch scalar type of a package's number type.
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
    case NumberType::kBFloat16:
      return c10::ScalarType::BFloat16;
    case NumberType::kFloat16:
      return c10::ScalarType::Half;
    case NumberType::kInt8:
      return c10::ScalarType::Char;
    case NumberType::kUInt8:
      return c10::ScalarType::Byte;
  }
  return c10::ScalarType::Float;
}

}  // namespace motley
