// Plans a run: from the options that its configuration leaves open, and for a resumed run from
// those of its previous plan.
#pragma once

#include <optional>
#include <string>

#include "base/log.h"
#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "cluster/run/prepare.h"
#include "partitioner/search/plan_options.h"
#include "plan/plan.h"
#include "run_config/config.h"

namespace motley {

// The planning data in a checkpoint.
struct SavedPlanning {
  std::optional<PlanFingerprint>
      fingerprint;  // determines the rounding of sums; older checkpoints lack it
  Config config;
};

// Makes a plan from the run's profile. A resumed run keeps the rounding of its sums if a plan with
// it exists. Errors are those of plan_or_remedy.
[[nodiscard]] Result<Plan> plan_like(const SavedPlanning& saved,
                                     const PreparedRun& run,
                                     const PlanOptions& options);

// How the plan's rounding differs from the run's so far: as plan_change, and for a plan with
// replicas also compared with the plan in the run's folder. Nothing if it does not differ.
[[nodiscard]] std::optional<std::string> rounding_change(const PlanFingerprint& saved,
                                                         const RunFolder& folder,
                                                         const Plan& plan);

// Logs a warning if the run's plan rounds differently than before.
void log_plan_change(const PlanFingerprint& saved, const PreparedRun& run, const Log& log);

}  // namespace motley
