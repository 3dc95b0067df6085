// A device's profile for a faster or slower device.
#pragma once

#include "plan/profile.h"

namespace motley {

// Multiplies every computing time by `factor`; bytes are unchanged. REQUIRES: factor > 0.
[[nodiscard]] DeviceProfile with_times_scaled(DeviceProfile device, double factor);

}  // namespace motley
