// The error if there is no plan: memory, pins or the requested number of stages.
#pragma once

#include "base/result.h"
#include "models/spec/model_spec.h"
#include "partitioner/cost/cost_model.h"
#include "partitioner/cost/search_space.h"
#include "partitioner/search/plan_options.h"

namespace motley {

// kInfeasible, with the memory deficit of the stage in the cut that comes closest to fitting;
// kConfig if the model fits, but not with these options. REQUIRES: the searches found nothing.
[[nodiscard]] Error no_plan_error(const ModelSpec& model,
                                  const CostModel& cost,
                                  const SearchSpace& space,
                                  const PlanOptions& options);

}  // namespace motley
