// Assigns the copies of each folder's files to other folders. A pure function.
#pragma once

#include <map>
#include <vector>

#include "cluster/replication/machine_stores.h"
#include "plan/cluster.h"

namespace motley {

// For each of the folders `writers`, the `copies` other folders that receive its files, or all
// others if there are fewer. The folders form a ring: each is followed by the remaining one with
// the fastest link from it; among equal links, by the one with the most free space. A folder's
// copies go to its successors, so each folder receives as many as it sends.
[[nodiscard]] std::map<StoreId, std::vector<StoreId>> plan_copies(
    const std::vector<StoreId>& writers,
    const StoreInventory& stores,
    const Cluster& cluster,
    int copies);

}  // namespace motley
