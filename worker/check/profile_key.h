// The key of this device's profile in the ProfileStore.
#pragma once

#include "models/device/compute_device.h"
#include "models/spec/model_spec.h"
#include "profiling/cache/profile_store.h"
#include "protocol/protocol.h"

namespace motley {

// `computes`: the job's device.
[[nodiscard]] ProfileKey profile_key(const Job& job,
                                     const ModelSpec& model,
                                     const ComputeDevice& computes);

}  // namespace motley
