// A step of a whole plan on the cost model: its schedule, simulated. With rounds, the mean step of
// a round.
#pragma once

#include <vector>

#include "base/result.h"
#include "models/spec/model_spec.h"
#include "partitioner/cost/plan_memory.h"
#include "partitioner/search/planner.h"
#include "partitioner/simulate/simulator.h"
#include "plan/cluster.h"
#include "plan/plan.h"
#include "plan/profile.h"

namespace motley {

struct SimulatedPlan {
  Schedule schedule;
  SimulatedStep step;
  std::vector<RankMemory> memory;  // [Rank] peak
};

// kConfig if the cluster or the profile lacks a machine or a codec that the plan uses.
[[nodiscard]] Result<SimulatedPlan> simulate_plan(const Plan& plan,
                                                  const ModelSpec& model,
                                                  const Cluster& cluster,
                                                  const Profile& profile,
                                                  const PlanOptions& options,
                                                  const SimulateOptions& how = {});

}  // namespace motley
