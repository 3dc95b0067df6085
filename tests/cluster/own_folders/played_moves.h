// The workers that bring parts of a checkpoint together, as threads.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/stores/machine_stores.h"
#include "cluster/stores/plan_moves.h"

namespace motley::testing {

// As move_files() of cluster/stores/move.h. `launcher_dir`: of the machine that is not among
// stores.dirs.
[[nodiscard]] Result<std::map<StoreId, std::filesystem::path>> play_moves(
    const std::vector<StoreMoves>& moves,
    const Stores& stores,
    const std::filesystem::path& launcher_dir,
    const std::string& launch);

}  // namespace motley::testing
