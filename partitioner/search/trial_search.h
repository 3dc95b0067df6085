// From candidates to simulated plans: the best estimates are simulated, then changed where that
// makes the simulated step shorter: split backward, the head beside the embedding, other cuts and
// devices.
#pragma once

#include <optional>
#include <vector>

#include "base/result.h"
#include "partitioner/search/candidates.h"
#include "partitioner/search/plan_trial.h"

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
// trial. REQUIRES: the candidates are rated; where any step is wanted there are some.
[[nodiscard]] Result<Trials> simulate_candidates(const TrialSetting& setting,
                                                 const Candidates& candidates,
                                                 double wanted_s);

}  // namespace motley
