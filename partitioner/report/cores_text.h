// A plan's use of the processors of its computers.
#pragma once

#include <string>

#include "plan/cluster.h"
#include "plan/plan.h"
#include "plan/profile.h"

namespace motley {

// One line: how many cores the plan's ranks use, which computers have unused cores, and which have
// more workers than cores. "" if no profile lists cores.
[[nodiscard]] std::string cores_text(const Plan& plan,
                                     const Cluster& cluster,
                                     const Profile& profile);

}  // namespace motley
