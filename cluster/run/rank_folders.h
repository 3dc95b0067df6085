// Assigns a run's ranks to the machines' folders, a replicator to each folder, and copies to
// replicators. Pure functions.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/ids.h"
#include "cluster/replication/machine_stores.h"
#include "plan/cluster.h"
#include "plan/plan.h"
#include "protocol/protocol.h"

namespace motley {

// The ranks that write to folders of their own machines instead of the launcher's.
[[nodiscard]] std::set<int> ranks_elsewhere(const Plan& plan, const StoreInventory& stores);

// The replicators of a run with several folders: the first rank of the plan that writes to each.
// The launcher's folder has one too, which only copies. None if all ranks write to the launcher's
// folder.
[[nodiscard]] std::map<int, ReplicatorJob> plan_replicators(const Plan& plan,
                                                            const StoreInventory& stores,
                                                            const Cluster& cluster,
                                                            int copies);

// By replicator: the names of the files that the ranks of its folder write in each save.
[[nodiscard]] std::map<int, std::vector<std::string>> files_by_replicator(
    const Plan& plan, const StoreInventory& stores);

}  // namespace motley
