// The best plan by one cost model: what the searches find, simulated, with its bounds and notes.
#pragma once

#include <optional>

#include "base/result.h"
#include "models/spec/model_spec.h"
#include "partitioner/cost/cost_model.h"
#include "partitioner/cost/search_space.h"
#include "partitioner/search/plan_options.h"
#include "partitioner/search/planner.h"
#include "partitioner/search/trial_memo.h"

namespace motley {

// As simulate_candidates (partitioner/search/trial_search.h). Nothing where no step of at most
// wanted_s is found; kInfeasible, which says what is short, where any is wanted and nothing fits.
[[nodiscard]] Result<std::optional<Planning>> plan_with_costs(const ModelSpec& model,
                                                              const CostModel& cost,
                                                              const CostModels& with_each_codec,
                                                              const SearchSpace& space,
                                                              const PlanOptions& options,
                                                              double wanted_s,
                                                              TrialMemo& memo);

}  // namespace motley
