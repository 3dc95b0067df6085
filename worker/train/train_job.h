// The worker's main job: one rank of a training run.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "base/result.h"
#include "models/device/compute_device.h"
#include "models/spec/model_spec.h"
#include "pipeline/execute/activity.h"
#include "protocol/launcher_channel.h"
#include "protocol/protocol.h"

namespace motley {

// Compares layers of a package on the device with their references (worker/check/layer_checks.h);
// `progress` is called repeatedly.
using CheckLayers =
    std::function<Result<void>(const Job& job,
                               const ModelSpec& model,
                               const std::set<int>& layers,
                               const ComputeDevice& device,
                               const std::function<void(const std::string& what)>& progress)>;

// Connects to the other ranks, trains from the job's starting point to its end, reports every step,
// and saves shards when they are due. Returns the first failure. `check`: called for the rank's
// layers before it allocates memory for them.
[[nodiscard]] Result<void> run_train_job(const Job& job,
                                         LauncherChannel& launcher,
                                         Activity& activity,
                                         const CheckLayers& check);

}  // namespace motley
