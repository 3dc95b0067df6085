// Remedy: the smallest single change with which a model fits, for the error's hint.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "partitioner/report/planning_input.h"

namespace motley {

// Single changes with each of which make_plan finds a plan, as text, the least expensive first:
// least extra memory in one machine (the one that needs least), activation checkpointing, smaller
// micro-batches, one more machine. Empty if none helps. Plans some dozen times. REQUIRES:
// make_plan(input) returns kInfeasible.
[[nodiscard]] std::vector<std::string> changes_that_fit(const PlanningInput& input);

// plan_in_full; if nothing fits, the error's remedy names changes that would.
[[nodiscard]] Result<Planning> plan_or_remedy(const PlanningInput& input);

}  // namespace motley
