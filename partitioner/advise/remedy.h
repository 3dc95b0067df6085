// Remedy: the smallest single change that makes a model fit, for the error that says it does not.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "partitioner/advise/planning_input.h"

namespace motley {

// Single changes after each of which make_plan finds a plan, in words, the least expensive first:
// least extra memory in one machine (the machine that needs least), recomputation, smaller
// micro-batches, one more machine. Empty when none of them does. It plans some dozen times.
// REQUIRES: make_plan(input) gives kInfeasible.
[[nodiscard]] std::vector<std::string> changes_that_fit(const PlanningInput& input);

// plan_in_full; when nothing fits, its error's remedy names what would.
[[nodiscard]] Result<Planning> plan_or_remedy(const PlanningInput& input);

}  // namespace motley
