// Removes from machines' own folders what the launcher's folder no longer holds.
#pragma once

#include <cstdint>
#include <set>

#include "base/log.h"
#include "base/result.h"
#include "cluster/stores/machine_stores.h"

namespace motley {

// A worker on one machine of each of those folders leaves the checkpoints of these steps and no
// others. Errors as those of WorkerGroup; kPeer where a later launch is at work in one. REQUIRES:
// the launch has kept them, and nothing trains any more.
[[nodiscard]] Result<void> prune_stores(const std::set<std::int64_t>& kept,
                                        const StoresRequest& request,
                                        const Stores& stores,
                                        const Log& log);

}  // namespace motley
