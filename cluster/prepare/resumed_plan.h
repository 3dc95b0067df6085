// Plans a run: from the options that its configuration leaves open, and for a resumed run from
// those of its previous plan.
#pragma once

#include <optional>
#include <string>

#include "base/log.h"
#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "partitioner/report/planning_input.h"
#include "plan/plan.h"
#include "record/run_folder.h"
#include "run_config/config.h"

namespace motley {

// The planning data in the checkpoint of a run to resume. Older checkpoints lack the fingerprint.
struct SavedPlanning {
  PlanFingerprint fingerprint;  // determines the rounding of sums
  Config config;
};

// Makes a plan. A resumed run keeps the rounding of its sums if a plan with it exists. `saved`:
// nullopt if the rounding is open. Errors are those of plan_or_remedy.
[[nodiscard]] Result<Plan> plan_like(const std::optional<SavedPlanning>& saved,
                                     const Config& config,
                                     const PlanningInput& input,
                                     const RunFolder& folder);

// How the plan's rounding differs from the run's so far: as plan_change, and for a plan with
// replicas also compared with the plan in the run's folder. Nothing if it does not differ.
[[nodiscard]] std::optional<std::string> rounding_change(const PlanFingerprint& saved,
                                                         const RunFolder& folder,
                                                         const Plan& plan);

// Logs a warning if the plan rounds differently than the run so far.
void log_plan_change(const PlanFingerprint& saved,
                     const RunFolder& folder,
                     const Plan& plan,
                     const Log& log);

}  // namespace motley
