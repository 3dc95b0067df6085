// A second simulator, simple and slow, that shares no code with the first. It guesses when every
// message arrives, computes from that what each rank does when, from that what each link does, and
// from that when the messages arrive, until nothing changes. Causes come before their effects, so
// each round settles at least the earliest message that was still wrong.
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
