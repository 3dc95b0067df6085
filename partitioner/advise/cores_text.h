// What a plan makes of the processors of its computers.
#pragma once

#include <string>

#include "plan/cluster.h"
#include "plan/plan.h"
#include "plan/profile.h"

namespace motley {

// A line: how many of their cores the plan's ranks use, on which computers some are left and on
// which there are more workers than cores. "" where no profile tells.
[[nodiscard]] std::string cores_text(const Plan& plan,
                                     const Cluster& cluster,
                                     const Profile& profile);

}  // namespace motley
