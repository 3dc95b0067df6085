// The newest checkpoint of a run of which every file is intact in some folder.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "checkpoint/replication/checkpoint_metadata.h"
#include "checkpoint/replication/inventory.h"
#include "cluster/replication/machine_stores.h"

namespace motley {

struct RestorePoint {
  CheckpointMetadata step_metadata;
  std::filesystem::path folder;  // in the launcher's folder
  // By file: the folders in which it is intact.
  std::map<std::string, std::vector<StoreId>> locations;
};

// The folders in which each file is intact, for a checkpoint that all folders were queried for.
// Only folders that a machine of the cluster can read count.
[[nodiscard]] std::map<std::string, std::vector<StoreId>> locations_of(
    const std::vector<WrittenFile>& files, const StoreInventory& stores);

// Queries all folders of the run.
using QueryStores = std::function<Result<StoreInventory>(const StoreQuery& store_query)>;

// The newest checkpoint known to the launcher's folder of which no file is missing. Skipped newer
// ones are logged. First, newer checkpoints of which other folders have parts are added to the
// launcher's folder: it was lost, is an old copy or is new. If no folder has the metadata of such a
// checkpoint, it is skipped too. Nothing if no folder has a checkpoint; kCorrupt, naming the
// missing and damaged files and their folders, if none is usable. `only`: considers only the
// checkpoint of that step.
// REQUIRES: the folder is locked by `launch`.
[[nodiscard]] Result<std::optional<RestorePoint>> find_restore_point(
    const std::filesystem::path& run_dir,
    const std::string& launch,
    const QueryStores& ask,
    const Log& log,
    std::optional<std::int64_t> only = {});

}  // namespace motley
