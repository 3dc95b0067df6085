// The dtypes of a device's matrix products.
#pragma once

#include <c10/core/ScalarType.h>

#include "models/device/compute_device.h"
#include "models/device/kinds/dtype_name.h"

namespace motley {

// Whether the device has hardware for matrix products of this dtype: always for fp32; for bf16 and
// fp16 if it takes them directly, without conversion to fp32. False for types that LibTorch would
// only emulate there, and for all others.
[[nodiscard]] bool computes_products_in(const ComputeDevice& device, at::ScalarType type);

}  // namespace motley
