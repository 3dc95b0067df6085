// The pictures that `motley plan` makes of a plan.
#pragma once

#include <optional>

#include "base/result.h"
#include "partitioner/advise/plan_analysis.h"
#include "partitioner/advise/planning_input.h"
#include "partitioner/search/planner.h"
#include "plan/plan.h"
#include "tools/arguments.h"

namespace motley {

// Whether the command line asks for any.
[[nodiscard]] bool draws(const Arguments& arguments);

// Writes what it asks for: the picture of --svg, the page of --html, beside `other` where that is
// given. REQUIRES: analyse_plan gave `analysis` of the input and the plan.
[[nodiscard]] Result<void> write_plan_pictures(const Arguments& arguments,
                                               const PlanningInput& input,
                                               const Planning& planning,
                                               const PlanAnalysis& analysis,
                                               const std::optional<Plan>& other);

}  // namespace motley
