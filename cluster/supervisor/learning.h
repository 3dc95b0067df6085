// Creates the Adaptation of a launch.
#pragma once

#include <memory>

#include "base/log.h"
#include "base/result.h"
#include "cluster/replan/adaptation.h"
#include "cluster/run/ready_run.h"
#include "cluster/run/training_request.h"

namespace motley {

// For the launch that starts now; never null. It searches no plan if the request disables it, on
// simulated devices, and if no profile is known. All arguments must outlive it. Errors of
// plan_options().
[[nodiscard]] Result<std::unique_ptr<Adaptation>> adaptation_of(const ReadyRun& run,
                                                                const TrainingRequest& request,
                                                                const Log& log);

}  // namespace motley
