// What a run has shown of its own plan, and whether another one would be better.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "partitioner/advise/calibration.h"
#include "partitioner/advise/planning_input.h"
#include "plan/plan.h"
#include "plan/profile.h"

namespace motley {

struct BetterPlan {
  Plan plan;                  // with what it is predicted to take
  Profile profile;            // that it was made from: the run's, calibrated
  double present_step_s = 0;  // of the run's own plan, predicted by that profile

  // What of a step it saves, above 0 and below 1.
  [[nodiscard]] double gain() const { return 1 - plan.predicted_step_s / present_step_s; }
};

// Calibrates the profile by what the run measured of its plan and plans again. Nothing where the
// plan that comes out does not save `least_gain` of the step, both of the run's plan as the
// calibrated profile predicts it and as it was measured: where the two differ the reason lies in
// what no profile knows of, and moving layers may not mend it. Errors of calibrate() and
// plan_in_full(). REQUIRES: as calibrate(); run.step_s is known; 0 < least_gain < 1.
[[nodiscard]] Result<std::optional<BetterPlan>> find_better_plan(const PlanningInput& input,
                                                                 const RunMeasurement& run,
                                                                 double least_gain);

// "desk:4 box×3+attic×1:2": how many layers lie on which machines, stage by stage, and how many
// micro-batches each of several replicas takes.
[[nodiscard]] std::string cut_text(const Plan& plan);

}  // namespace motley
