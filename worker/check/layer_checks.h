// Whether the layers of a package compute on this machine's device what they computed where the
// package was exported: compared before anything is trained, once for each device, its libraries
// and number type (models/graph/reference_check.h, measure/kept/check_store.h).
#pragma once

#include <functional>
#include <set>
#include <string>

#include "base/result.h"
#include "models/device/compute_device.h"
#include "models/spec/model_spec.h"
#include "protocol/protocol.h"

namespace motley {

// Compares those of `layers` that were not found right here before; nothing of a model that is no
// package, or whose package has no reference. What was right is kept. A layer that the device has
// no room to compare is left out with a line on stderr. `progress` is called again and again, with
// what is being compared. kConfig where one is wrong, with the operation and what to do. REQUIRES:
// the job's device computes.
[[nodiscard]] Result<void> check_layers(
    const Job& job,
    const ModelSpec& model,
    const std::set<int>& layers,
    const ComputeDevice& device,
    const std::function<void(const std::string& what)>& progress);

// All layers of a model.
[[nodiscard]] std::set<int> all_layers(const ModelSpec& model);

}  // namespace motley
