// The output of `motley plan` for hypothetical machines: --what-if and --advise.
#pragma once

#include <string>

#include "base/json.h"
#include "base/result.h"
#include "cli/arguments.h"
#include "partitioner/report/planning_input.h"

namespace motley {

// Prints one of the two on standard output, according to --json.
void print_planned(const Arguments& arguments, const Json& json, const std::string& text);

// The current plan beside the plan with the changes. If only the latter is feasible, it is shown
// alone.
[[nodiscard]] Result<void> show_what_if(const Arguments& arguments, const PlanningInput& input);

// The upgrades that shorten the step most, and those that do not.
[[nodiscard]] Result<void> show_advice(const Arguments& arguments, const PlanningInput& input);

}  // namespace motley
