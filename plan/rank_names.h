// The names of ranks in messages and files.
#pragma once

#include <string>
#include <vector>

#include "base/ids.h"
#include "plan/plan.h"

namespace motley {

// "stage 1 (box)"; with several chunks "stages 0 and 3 (box)"; on a simulated device "stage 1 (box,
// virtual)".
[[nodiscard]] std::string rank_name(const Plan& plan, Rank rank);
// The names of all ranks, [Rank].
[[nodiscard]] std::vector<std::string> rank_names(const Plan& plan);

}  // namespace motley
