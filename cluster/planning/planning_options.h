// What a configuration asks of the planner.
#pragma once

#include "base/result.h"
#include "job/config.h"
#include "models/spec/model_spec.h"
#include "partitioner/search/plan_options.h"

namespace motley {

// The planner's options that a configuration means, for `stages` stages, or as many as are fastest
// where that is 0. kConfig, with the key, for pins and codecs that are none.
[[nodiscard]] Result<PlanOptions> plan_options(const Config& config,
                                               const ModelSpec& model,
                                               int stages);

}  // namespace motley
