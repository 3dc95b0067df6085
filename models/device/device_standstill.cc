#include "models/device/device_standstill.h"

#include <fmt/format.h>

namespace motley {

Error DeviceStandstill::error(const std::string& during) const {
  return {ErrorCode::kInternal,
          fmt::format("waiting for device {} to finish {}: it did not within {:g} s", device_,
                      during, waited_s_),
          "it does not answer: a kernel on it does not end, or its driver hangs",
          "see that machine's kernel log (sudo dmesg) and whether its driver still answers "
          "(nvidia-smi for cuda); if not, restart the machine"};
}

}  // namespace motley
