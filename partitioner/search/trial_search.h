// From candidates to simulated plans: the best estimates are simulated, then changed where that
// makes the simulated step shorter: split backward, the head beside the embedding, other cuts and
// devices.
#pragma once

#include <optional>
#include <vector>

#include "base/result.h"
#include "models/spec/model_spec.h"
#include "partitioner/search/candidates.h"
#include "partitioner/search/plan_trial.h"

namespace motley {

struct Trials {
  std::vector<PlanTrial> all;  // best first
  std::optional<PlanTrial> single;
  std::optional<PlanTrial> data_parallel;
};

// Deterministic. kInfeasible where no candidate fits with what the estimates do not know of.
// REQUIRES: there are candidates, rated.
[[nodiscard]] Result<Trials> simulate_candidates(const ModelSpec& model,
                                                 const CostModel& cost,
                                                 const SearchSpace& space,
                                                 const PlanOptions& options,
                                                 const Candidates& candidates);

}  // namespace motley
