// Distributed checkpoints: finds the checkpoint to resume from, if the machines of a run may have
// run folders of their own.
#pragma once

#include <optional>

#include "base/log.h"
#include "base/result.h"
#include "cluster/prepare/check_request.h"
#include "cluster/prepare/claim_folder.h"
#include "cluster/replication/machine_stores.h"
#include "cluster/replication/restore_point.h"
#include "cluster/run/training_request.h"

namespace motley {

struct FoundShards {
  bool resumes = false;  // from a checkpoint; final
  // Set if the machines were asked for their folders.
  StoreInventory stores;
  std::optional<RestorePoint> restore_point;
};

// Whether find_shards() asks the machines: if checkpoints may be distributed, except in a dry run.
[[nodiscard]] bool asks_for_shards(const TrainingRequest& request, const RunMachines& machines);

// Checks that the machines are usable, asks them for their folders, and raises the fencing token of
// the lock above those that were used in them. A new run creates absent folders; a resumed one does
// not. If no machine has a checkpoint of a run that was started, the folder is prepared for a new
// run. kConfig for a new run if a machine's folder contains a run, and for a resumed one that was
// never started; kCorrupt if no checkpoint is usable; kPeer if another launcher uses a folder, or
// if the newest checkpoint needs a machine that does not answer; others as check_machines(). Does
// nothing unless asks_for_shards().
[[nodiscard]] Result<FoundShards> find_shards(const TrainingRequest& request,
                                              const CheckedRequest& checked,
                                              const ClaimedFolder& claimed,
                                              const Log& log);

}  // namespace motley
