#include "partitioner/report/scaled_profile.h"

#include "base/check.h"

namespace motley {

DeviceProfile with_times_scaled(DeviceProfile device, double factor) {
  MOTLEY_CHECK(factor > 0, "times cannot be scaled by {}", factor);
  device.scale_times(factor);
  return device;
}

}  // namespace motley
