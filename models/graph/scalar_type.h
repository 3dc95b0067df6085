// The LibTorch scalar type of a package's number type.
#pragma once

#include <c10/core/ScalarType.h>

#include "models/package/tensor_spec.h"

namespace motley {

[[nodiscard]] inline c10::ScalarType scalar_type(Dtype type) {
  switch (type) {
    case Dtype::kFloat32:
      return c10::ScalarType::Float;
    case Dtype::kInt64:
      return c10::ScalarType::Long;
    case Dtype::kBool:
      return c10::ScalarType::Bool;
    case Dtype::kBFloat16:
      return c10::ScalarType::BFloat16;
    case Dtype::kFloat16:
      return c10::ScalarType::Half;
    case Dtype::kInt8:
      return c10::ScalarType::Char;
    case Dtype::kUInt8:
      return c10::ScalarType::Byte;
  }
  return c10::ScalarType::Float;
}

}  // namespace motley
