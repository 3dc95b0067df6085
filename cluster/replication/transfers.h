// Transfers the parts of a checkpoint to the machines that need them, by a worker on each.
#pragma once

#include <filesystem>
#include <map>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "cluster/launch/transport_choice.h"
#include "cluster/replication/machine_stores.h"
#include "cluster/replication/plan_transfers.h"
#include "run_config/config.h"

namespace motley {

// Returns, by the id of the machines' folders, the folders from which their ranks resume; folders
// not in `transfers` have no entry. `config`: of the run, for its [comm]. Errors as those of
// WorkerGroup; kCorrupt if a file that was intact at the inventory no longer is, or if a disk has
// too little space.
[[nodiscard]] Result<std::map<StoreId, std::filesystem::path>> transfer_files(
    const std::vector<StoreTransfers>& transfers,
    const InventoryRequest& request,
    const StoreInventory& stores,
    const Config& config,
    const Log& log);

}  // namespace motley
