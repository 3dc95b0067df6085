// The choice between the plans that a run has already had, for a restart.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace motley {

// The plan for a launch without the machines `without`: `first`, that of the start or of the last
// move, if it uses none of them; else `last`, that of the last launch, unless a machine that it was
// made without, one of `left_out`, is back; nullopt = a new plan is needed.
[[nodiscard]] std::optional<Plan> plan_to_reuse(const Plan& first,
                                                const Plan& last,
                                                const std::vector<std::string>& left_out,
                                                const std::vector<std::string>& without);

}  // namespace motley
