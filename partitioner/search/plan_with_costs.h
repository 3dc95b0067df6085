// The best plan by one cost model: what the searches find, simulated, with its bounds and notes.
#pragma once

#include <optional>

#include "base/result.h"
#include "partitioner/search/plan_trial.h"
#include "partitioner/search/planner.h"

namespace motley {

// As simulate_candidates (partitioner/search/trial_search.h). Nothing where no step of at most
// wanted_s is found; kInfeasible, which says what is short, where any is wanted and nothing fits.
[[nodiscard]] Result<std::optional<Planning>> plan_with_costs(const TrialSetting& setting,
                                                              double wanted_s);

}  // namespace motley
