// A device's profile as it would be if the device were faster or slower.
#pragma once

#include "plan/profile.h"

namespace motley {

// Every time of computing multiplied by `factor`; bytes stay. REQUIRES: factor > 0.
[[nodiscard]] DeviceProfile with_times_scaled(DeviceProfile device, double factor);

}  // namespace motley
