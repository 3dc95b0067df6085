// Evaluates a run's plan by its measurements, and searches for a better one.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "partitioner/report/calibration.h"
#include "partitioner/report/planning_input.h"
#include "plan/plan.h"
#include "plan/profile.h"

namespace motley {

struct BetterPlan {
  Plan plan;                  // with its predicted step time
  Profile profile;            // its input: the run's profile, calibrated
  double present_step_s = 0;  // predicted for the run's own plan by that profile

  // The fraction of the step time that it saves, above 0 and below 1.
  [[nodiscard]] double gain() const { return 1 - plan.predicted_step_s / present_step_s; }
};

// Calibrates the profile by the run's measurements and plans again. Nothing if the new plan does
// not save `least_gain` of the step time of the run's plan, both as predicted by the calibrated
// profile and as measured. If these two differ, the cause is not in the profile, and moving layers
// may not remove it. Errors of calibrate() and plan_in_full(). REQUIRES: as calibrate(); run.step_s
// is known; 0 < least_gain < 1.
[[nodiscard]] Result<std::optional<BetterPlan>> find_better_plan(const PlanningInput& input,
                                                                 const RunMeasurement& run,
                                                                 double least_gain);

// "desk:4 box×3+attic×1:2": the machines of each stage and its number of layers, with the
// micro-batches of each replica if there are several.
[[nodiscard]] std::string cut_text(const Plan& plan);

}  // namespace motley
