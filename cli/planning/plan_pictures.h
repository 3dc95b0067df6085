// The figures that `motley plan` makes of a plan.
#pragma once

#include <optional>

#include "base/result.h"
#include "cli/arguments.h"
#include "partitioner/report/plan_analysis.h"
#include "partitioner/report/planning_input.h"
#include "partitioner/search/planner.h"
#include "plan/plan.h"

namespace motley {

// Whether the command line requests any.
[[nodiscard]] bool draws(const Arguments& arguments);

// Writes the requested files: the picture of --svg and the page of --html, with `other` for
// comparison if given. REQUIRES: analyse_plan returned `analysis` for the input and the plan.
[[nodiscard]] Result<void> write_plan_pictures(const Arguments& arguments,
                                               const PlanningInput& input,
                                               const Planning& planning,
                                               const PlanAnalysis& analysis,
                                               const std::optional<Plan>& other);

}  // namespace motley
