// Why there is no plan: memory, pins or the number of stages that was asked for.
#pragma once

#include "base/result.h"
#include "models/spec/model_spec.h"
#include "partitioner/cost/cost_model.h"
#include "partitioner/cost/search_space.h"
#include "partitioner/search/plan_options.h"

namespace motley {

// kInfeasible with the stage that misses memory where the model comes nearest to fitting; kConfig
// where it would fit, but not as the options want it. REQUIRES: the searches have found nothing.
[[nodiscard]] Error no_plan(const ModelSpec& model,
                            const CostModel& cost,
                            const SearchSpace& space,
                            const PlanOptions& options);

}  // namespace motley
