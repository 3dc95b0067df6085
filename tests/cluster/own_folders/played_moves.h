// The workers that move the parts of a checkpoint, as threads.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/replication/machine_stores.h"
#include "cluster/replication/plan_transfers.h"

namespace motley::testing {

// As transfer_files() of cluster/replication/transfers.h. `launcher_dir`: the folder of the
// launcher's machine, which is not in stores.dirs.
[[nodiscard]] Result<std::map<StoreId, std::filesystem::path>> play_moves(
    const std::vector<StoreTransfers>& transfers,
    const StoreInventory& stores,
    const std::filesystem::path& launcher_dir,
    const std::string& launch);

}  // namespace motley::testing
