// Which folder's files are copied to which other folders. A pure function.
#pragma once

#include <map>
#include <vector>

#include "cluster/stores/machine_stores.h"
#include "plan/cluster.h"

namespace motley {

// For each of the folders `writers`, as many others of them as `copies` says, or all that there
// are. The folders form a ring, each followed by the one with the fastest link from it of those
// that are left, of equal ones by the one with most room; a folder's copies go to those that follow
// it. So each of them gets as many as it gives.
[[nodiscard]] std::map<StoreId, std::vector<StoreId>> plan_copies(
    const std::vector<StoreId>& writers, const Stores& stores, const Cluster& cluster, int copies);

}  // namespace motley
