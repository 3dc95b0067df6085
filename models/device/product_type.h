// What train.precision comes to on a device.
#pragma once

#include <string_view>

#include <c10/core/ScalarType.h>

#include "models/device/compute_device.h"

namespace motley {

// The numbers that products are computed in there: those of `precision` ("fp32", "bf16", "fp16")
// where the device has units for them, else fp32, since what it would compute by detours is no
// faster. REQUIRES: a validated configuration's.
[[nodiscard]] at::ScalarType product_type(const ComputeDevice& device, std::string_view precision);

}  // namespace motley
