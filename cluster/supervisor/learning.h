// What a launch learns about its plan and about plans on other machines.
#pragma once

#include <memory>
#include <stop_token>

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

// The predicted time of a step on the machines of `planning`, with the settings of `like` that
// determine rounding, or with the given plan. Starts no process; ends early once a stop is
// requested. Errors of resolve_plan() and of the planner.
[[nodiscard]] Result<double> predicted_step_s(const PlanRequest& planning,
                                              const Plan& like,
                                              const std::stop_token& stop);

}  // namespace motley
