#include "models/device/product_type.h"

#include "models/device/dtype_support.h"

namespace motley {

at::ScalarType product_type(const ComputeDevice& device, std::string_view precision) {
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf}) {
    if (precision == dtype_name(type) && computes_products_in(device, type)) return type;
  }
  return at::kFloat;
}

}  // namespace motley
