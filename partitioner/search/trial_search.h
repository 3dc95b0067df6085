// From candidates to simulated plans: the best estimates are simulated, then changed while the
// simulated step gets shorter: split backward, both ends of the model on one device, other cuts and
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

// Simulated steps are hardly ever shorter than their estimates by more than this factor. With plain
// 1F1B the difference is smaller; with split backward, which the estimates do not model, it is as
// large.
inline constexpr double kEstimateError = 1.25;

// Deterministic. kInfeasible if no candidate fits with the memory that the estimates do not model.
// wanted_s: longer steps are not needed, though some may be included; if it is finite there may be
// no trial. REQUIRES: the candidates are rated; if wanted_s is infinite there is at least one.
[[nodiscard]] Result<Trials> simulate_candidates(const TrialSetting& setting,
                                                 const Candidates& candidates,
                                                 double wanted_s);

}  // namespace motley
