// Checks whether the layers of a package compute on this machine's device what they computed where
// the package was exported: once for each device, its libraries and dtype, before training
// (models/graph/reference_check.h, profiling/cache/check_store.h).
#pragma once

#include <functional>
#include <set>
#include <string>

#include "base/result.h"
#include "models/device/compute_device.h"
#include "models/spec/model_spec.h"
#include "protocol/protocol.h"

namespace motley {

// Compares those of `layers` that have not passed here before. Does nothing for a model that is not
// a package, or a package without references. Passed layers are recorded. A layer that does not fit
// into the device's memory for the comparison is skipped with a line on stderr. `progress` is
// called repeatedly with the current comparison. kConfig if a layer is wrong, with the operation
// and a hint. REQUIRES: the job's device is not a simulated one.
[[nodiscard]] Result<void> check_layers(
    const Job& job,
    const ModelSpec& model,
    const std::set<int>& layers,
    const ComputeDevice& device,
    const std::function<void(const std::string& what)>& progress);

// All layers of a model.
[[nodiscard]] std::set<int> all_layers(const ModelSpec& model);

}  // namespace motley
