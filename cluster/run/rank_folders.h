// Which ranks of a run write into which machine's folder, who of them keeps it, and who copies to
// whom. Pure functions.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/ids.h"
#include "cluster/stores/machine_stores.h"
#include "plan/cluster.h"
#include "plan/plan.h"
#include "protocol/protocol.h"

namespace motley {

// The ranks that write into folders of their machines' own, not the launcher's.
[[nodiscard]] std::set<int> ranks_elsewhere(const Plan& plan, const Stores& stores);

// The keepers, where there are several folders: of each that ranks of the plan write into, the
// first of these. The launcher's folder has one too, which only copies. None where all ranks write
// into the launcher's.
[[nodiscard]] std::map<int, KeeperJob> plan_keepers(const Plan& plan,
                                                    const Stores& stores,
                                                    const Cluster& cluster,
                                                    int copies);

// By keeper: the names of the files that the ranks of its folder write in each save.
[[nodiscard]] std::map<int, std::vector<std::string>> files_by_keeper(const Plan& plan,
                                                                      const Stores& stores);

}  // namespace motley
