// Distributed checkpoints: moves the parts of the checkpoint to resume to the ranks that read them.
#pragma once

#include <string>

#include "base/log.h"
#include "base/result.h"
#include "cluster/prepare/find_shards.h"
#include "cluster/run/ready_run.h"
#include "cluster/run/training_request.h"

namespace motley {

// Creates the machines' folders that are still absent, moves the parts of the restore point, and
// logs a warning for each folder without space for a save. `launch`: as RunLock::launch(). Errors
// are those of inventory_stores() and transfer_files().
[[nodiscard]] Result<RunShards> deliver_shards(const TrainingRequest& request,
                                               const PlannedRun& planned,
                                               const FoundShards& found,
                                               const std::string& launch,
                                               const Log& log);

}  // namespace motley
