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
#include "partitioner/search/trial_memo.h"

namespace motley {

struct Trials {
  std::vector<PlanTrial> all;  // best first
  std::optional<PlanTrial> single;
  std::optional<PlanTrial> data_parallel;
};

// Simulated steps are hardly ever shorter than their estimates by more: of plain 1F1B less, of
// split backward, which the estimates do not know of, as much.
inline constexpr double kEstimateError = 1.25;

// Deterministic. kInfeasible where no candidate fits with what the estimates do not know of.
// wanted_s: a longer step is of no use, though some may be there; when it is finite there may be no
// trial.
// cost: what the candidates are rated by; with_each_codec: the same with each codec of gradients
// that a plan may have; of equally good ones the earlier is taken. memo: of all searches for one
// plan. REQUIRES: the candidates are
// rated; where any step is wanted there are some.
[[nodiscard]] Result<Trials> simulate_candidates(const ModelSpec& model,
                                                 const CostModel& cost,
                                                 const CostModels& with_each_codec,
                                                 const SearchSpace& space,
                                                 const PlanOptions& options,
                                                 const Candidates& candidates,
                                                 double wanted_s,
                                                 TrialMemo& memo);

}  // namespace motley
