// The workers that move the parts of a checkpoint, as threads.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/stores/machine_stores.h"
#include "cluster/stores/plan_moves.h"

namespace motley::testing {

// As move_files() of cluster/stores/move.h. `launcher_dir`: the folder of the launcher's machine,
// which is not in stores.dirs.
[[nodiscard]] Result<std::map<StoreId, std::filesystem::path>> play_moves(
    const std::vector<StoreMoves>& moves,
    const Stores& stores,
    const std::filesystem::path& launcher_dir,
    const std::string& launch);

}  // namespace motley::testing
