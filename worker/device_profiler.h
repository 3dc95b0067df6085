// The profile of one device: what is kept of it, where that still holds, and measured what is not.
#pragma once

#include <vector>

#include "base/result.h"
#include "models/device/compute_device.h"
#include "models/spec/model_spec.h"
#include "plan/profile.h"
#include "protocol/protocol.h"
#include "worker/measuring_report.h"

namespace motley {

struct MeasuredDevice {
  DeviceProfile device;
  bool was_kept = false;  // nothing had to be measured
};

// A device that computes is measured beside those of the computer that measure at the same time;
// times are those of the clock. Of a virtual one (job.virtual_speed) layers are computed, and what
// crosses between stages this processor encodes. Says on stderr what is the matter with a kept
// profile. Throws what LibTorch throws, such as for a layer that the device has no memory for.
// sizes: of micro-batches, ascending.
[[nodiscard]] Result<MeasuredDevice> measure_device(const Job& job,
                                                    const ModelSpec& model,
                                                    const std::vector<int>& sizes,
                                                    MeasuringReport& report,
                                                    const ComputeDevice& computes);

}  // namespace motley
