// Two plans of one model beside each other, for people: before and after a change.
#pragma once

#include <string>

#include "models/spec/model_spec.h"
#include "plan/plan.h"

namespace motley {

// A table: the step, tokens a second, schedule and, for each machine that either uses, its layers
// and memory. REQUIRES: both are plans of `model`.
[[nodiscard]] std::string compare_plans(const Plan& before,
                                        const Plan& after,
                                        const ModelSpec& model);

}  // namespace motley
