// The newest checkpoint of a run whose files are all somewhere, whole.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "checkpoint/store/look.h"
#include "checkpoint/store/texts.h"
#include "cluster/stores/machine_stores.h"

namespace motley {

struct RestorePoint {
  CheckpointMetadata texts;
  std::filesystem::path folder;                         // of the launcher's
  std::map<std::string, std::vector<StoreId>> holders;  // by file: where it lies whole
};

// Where each file lies whole, of a checkpoint that all were asked for. Only folders that some
// machine of the cluster can read count.
[[nodiscard]] std::map<std::string, std::vector<StoreId>> holders_of(
    const std::vector<WrittenFile>& files, const Stores& stores);

// Asks all folders of the run.
using AskStores = std::function<Result<Stores>(const StoreQuestion& question)>;

// From the newest on, the first checkpoint that the launcher's folder knows of which nothing is
// missing; of those before it that were passed over `log` is told. What other folders have that is
// newer becomes known in it first: it has been lost, is an old copy or is new; where none of them
// can tell what belongs to it, it is passed over too. Nothing where nobody knows of a checkpoint;
// kCorrupt, naming what is missing or damaged and where, where none can be used. `only`: no
// checkpoint but that step's.
// REQUIRES: the folder is `launch`'s.
[[nodiscard]] Result<std::optional<RestorePoint>> find_restore_point(
    const std::filesystem::path& run_dir,
    const std::string& launch,
    const AskStores& ask,
    const Log& log,
    std::optional<std::int64_t> only = {});

}  // namespace motley
