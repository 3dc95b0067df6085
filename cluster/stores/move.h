// Brings the parts of a checkpoint to the machines that need them, by a worker on each.
#pragma once

#include <filesystem>
#include <map>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "cluster/launch/transport_choice.h"
#include "cluster/stores/machine_stores.h"
#include "cluster/stores/plan_moves.h"
#include "job/config.h"

namespace motley {

// Returns the folders that the machines' ranks resume from, by the machines' folders; of those that
// are not in `moves` nothing. `config`: of the run, for its [comm]. Errors as those of WorkerGroup;
// kCorrupt where what was whole when it was asked for is not any more.
[[nodiscard]] Result<std::map<StoreId, std::filesystem::path>> move_files(
    const std::vector<StoreMoves>& moves,
    const StoresRequest& request,
    const Stores& stores,
    const Config& config,
    const Log& log);

}  // namespace motley
