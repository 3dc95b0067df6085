// Converts a configuration into the planner's options.
#pragma once

#include "base/result.h"
#include "models/spec/model_spec.h"
#include "partitioner/search/plan_options.h"
#include "run_config/config.h"

namespace motley {

// The planner's options for `stages` stages, or for the fastest number if that is 0. kConfig, with
// the key, for invalid pins and codecs.
[[nodiscard]] Result<PlanOptions> plan_options(const Config& config,
                                               const ModelSpec& model,
                                               int stages);

}  // namespace motley
