#include "models/device/device_stall.h"

#include <fmt/format.h>

namespace motley {

Error DeviceStall::error(const std::string& during) const {
  return {ErrorCode::kInternal,
          fmt::format("waiting for device {} to finish {}: timed out after {:g} s", device_, during,
                      waited_s_),
          "a kernel on the device does not end, or its driver hangs",
          "check that machine's kernel log (sudo dmesg) and its driver (nvidia-smi for cuda); "
          "restart the machine if the driver does not respond"};
}

}  // namespace motley
