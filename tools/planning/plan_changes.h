// What `motley plan` shows of machines as they are not: --what-if and --advise.
#pragma once

#include <string>

#include "base/json.h"
#include "base/result.h"
#include "partitioner/advise/planning_input.h"
#include "tools/arguments.h"

namespace motley {

// One of the two on standard output, as --json asks.
void print_planned(const Arguments& arguments, const Json& json, const std::string& text);

// The plan as things are beside the plan with the changes. A plan that is only possible with them
// is shown alone.
[[nodiscard]] Result<void> show_what_if(const Arguments& arguments, const PlanningInput& input);

// The upgrades that shorten the step most, and those that do not.
[[nodiscard]] Result<void> show_advice(const Arguments& arguments, const PlanningInput& input);

}  // namespace motley
