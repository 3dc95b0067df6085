// The profile of one device: stored values if they are still valid, measurements of the rest.
#pragma once

#include <vector>

#include "base/result.h"
#include "models/device/compute_device.h"
#include "models/spec/model_spec.h"
#include "plan/profile.h"
#include "protocol/protocol.h"
#include "worker/profile/measuring_report.h"

namespace motley {

struct MeasuredDevice {
  DeviceProfile device;
  bool was_stored = false;  // nothing had to be measured
};

// A device is measured concurrently with the others of its computer; times are wall-clock seconds.
// For one that is not measured (DeviceCapabilities), layer times follow from job.virtual_speed, and
// this processor encodes messages. Reports problems with a stored profile on stderr. Throws
// LibTorch's exceptions, for example for a layer that exceeds the device's memory. sizes:
// micro-batch sizes, ascending.
[[nodiscard]] Result<MeasuredDevice> measure_device(const Job& job,
                                                    const ModelSpec& model,
                                                    const std::vector<int>& sizes,
                                                    MeasuringReport& report,
                                                    const ComputeDevice& computes);

}  // namespace motley
