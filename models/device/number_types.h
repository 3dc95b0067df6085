// The number types that a device multiplies matrices in.
#pragma once

#include <c10/core/ScalarType.h>

#include "models/device/compute_device.h"
#include "models/device/kinds/number_type_name.h"

namespace motley {

// Whether the device has units for products of matrices of this type: fp32 always; bf16 and fp16
// where it takes them as they are, not by way of fp32. What else LibTorch would compute, slowly or
// not at all there, is no yes. Of every type but these three: no.
[[nodiscard]] bool computes_products_in(const ComputeDevice& device, at::ScalarType type);

}  // namespace motley
