// The rounding of a plan's sums: whether plans round alike, and the options for plans that do. Pure
// functions.
#pragma once

#include <optional>
#include <string>

#include "checkpoint/checkpoint.h"
#include "partitioner/search/plan_options.h"
#include "plan/plan.h"
#include "run_config/config.h"

namespace motley {

[[nodiscard]] PlanFingerprint plan_fingerprint(const Plan& plan);

// The options restricted to plans that round like the run so far, if the configuration leaves this
// open: with its codecs, except for a removed one, and without replicas if it had none and no
// rounds are asked for.
[[nodiscard]] PlanOptions options_like(const PlanFingerprint& saved,
                                       const Config& config,
                                       PlanOptions options);

// "micro-batches of 4 samples instead of 2, …" if `now` rounds differently, else nothing.
[[nodiscard]] std::optional<std::string> plan_change(const PlanFingerprint& saved,
                                                     const PlanFingerprint& now);

// Whether both plans add each layer's gradient in the same order: equal parts of the batch on as
// many replicas, placed on machines in the same pattern. True for plans without replicas.
[[nodiscard]] bool have_same_rounding(const Plan& a, const Plan& b);

}  // namespace motley
