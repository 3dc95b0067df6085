// Removes from machines' own folders the checkpoints that the launcher's folder no longer contains.
#pragma once

#include <cstdint>
#include <set>

#include "base/log.h"
#include "base/result.h"
#include "cluster/replication/machine_stores.h"

namespace motley {

// A worker on one machine of each of those folders removes all checkpoints except those of these
// steps. Errors as those of WorkerGroup; kPeer if a later launch uses one. REQUIRES: the launch has
// retained these, and the training has ended.
[[nodiscard]] Result<void> prune_stores(const std::set<std::int64_t>& kept,
                                        const InventoryRequest& request,
                                        const StoreInventory& stores,
                                        const Log& log);

}  // namespace motley
