// How a run is planned: what its configuration leaves to the planner, and what a resumed run keeps
// of the plan that it had.
#pragma once

#include <optional>
#include <string>

#include "base/log.h"
#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "cluster/run/prepare.h"
#include "job/config.h"
#include "partitioner/search/plan_options.h"
#include "plan/plan.h"

namespace motley {

// What a checkpoint tells of how its run was planned.
struct SavedPlanning {
  std::optional<PlanMark> mark;  // what decided how sums were rounded; older checkpoints lack it
  Config config;
};

// A plan by the run's profile; a resumed run keeps what decides how its sums are rounded, as far as
// a plan with that exists. Errors are those of plan_or_remedy.
[[nodiscard]] Result<Plan> plan_like(const SavedPlanning& saved,
                                     const PreparedRun& run,
                                     const PlanOptions& options);

// What the plan rounds otherwise than the run did so far, as plan_change says it, and where it has
// replicas also than the plan in the run's folder does; nothing where it does not.
[[nodiscard]] std::optional<std::string> rounding_change(const PlanMark& saved,
                                                         const RunFolder& folder,
                                                         const Plan& plan);

// What the run so far did otherwise is said: from here on its numbers differ by rounding.
void tell_change(const PlanMark& saved, const PreparedRun& run, const Log& log);

}  // namespace motley
