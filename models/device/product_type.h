// The dtype of products on a device, from train.precision.
#pragma once

#include <string_view>

#include <c10/core/ScalarType.h>

#include "models/device/compute_device.h"

namespace motley {

// `precision` ("fp32", "bf16", "fp16") if the device has hardware for it, else fp32, since
// emulation is no faster. REQUIRES: the value of a validated configuration.
[[nodiscard]] at::ScalarType product_type(const ComputeDevice& device, std::string_view precision);

}  // namespace motley
