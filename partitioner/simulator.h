// The simulator runs the very schedule that the executor runs, on the cost model. Pure.
#pragma once

#include <vector>

#include "base/result.h"
#include "models/model_spec.h"
#include "partitioner/cost_model.h"
#include "partitioner/plan.h"
#include "partitioner/trace.h"
#include "pipeline/action.h"

namespace motley {

struct SimulatedStep {
  double step_s = 0;
  std::vector<double> compute_s;  // [Rank]
  std::vector<double> wait_s;     // [Rank]
  std::vector<TraceSpan> spans;   // in order of start
};

// The cost model's slot of each rank: [Rank]. The n-th rank on a device of one name gets the n-th
// slot of that name. kConfig when the plan names a device that the cluster lacks.
[[nodiscard]] Result<std::vector<int>> slots_of_ranks(const Plan& plan, const CostModel& cost);

// The time of one step. Each rank runs its actions in order on one compute stream; each directed
// link carries one message at a time. kInternal on a schedule that deadlocks.
// rank_slots: as slots_of_ranks gives them.
// REQUIRES: schedule, plan and rank_slots agree in ranks and chunks; validate_schedule accepts the
// schedule or it deadlocks.
[[nodiscard]] Result<SimulatedStep> simulate_step(const Schedule& schedule,
                                                  const Plan& plan,
                                                  const ModelSpec& model,
                                                  const CostModel& cost,
                                                  const std::vector<int>& rank_slots);

}  // namespace motley
