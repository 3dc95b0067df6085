// A second simulator, simple and slow, that shares no code with the first. It starts with guessed
// arrival times. From them it computes the actions of each rank, then the traffic of each link,
// then new arrival times, until nothing changes. Causes precede their effects, so each round
// corrects at least the earliest wrong message.
#pragma once

#include <vector>

#include "models/spec/model_spec.h"
#include "partitioner/cost/cost_model.h"
#include "pipeline/schedule/action.h"
#include "plan/plan.h"

namespace motley {

struct ReferenceStep {
  double step_s = 0;
  std::vector<double> compute_s;  // [Rank]
  std::vector<double> codec_s;    // [Rank]
  std::vector<double> wait_s;     // [Rank]
};

// REQUIRES: the schedule does not deadlock.
[[nodiscard]] ReferenceStep reference_step(const Schedule& schedule,
                                           const Plan& plan,
                                           const ModelSpec& model,
                                           const CostModel& cost,
                                           const std::vector<int>& slots);

}  // namespace motley
