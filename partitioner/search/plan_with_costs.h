// The best plan for one cost model: the results of the searches, simulated, with bounds and notes.
#pragma once

#include <optional>

#include "base/result.h"
#include "partitioner/search/plan_trial.h"
#include "partitioner/search/planner.h"

namespace motley {

// As simulate_candidates (partitioner/search/trial_search.h). nullopt if no step of at most
// wanted_s is found; kInfeasible, with the memory deficit, if nothing fits and wanted_s is
// infinite.
[[nodiscard]] Result<std::optional<Planning>> plan_with_costs(const TrialSetting& setting,
                                                              double wanted_s);

}  // namespace motley
