// Distributed checkpoints: prepares a run whose machines may have run folders of their own. Finds
// the checkpoint to resume from across all folders, and moves its parts to where they are needed.
#pragma once

#include <set>
#include <string>

#include "base/log.h"
#include "base/result.h"
#include "cluster/run/prepare.h"

namespace motley {

// The machines that the run may use, and whether its checkpoints may be distributed: a machine
// could have a folder of its own, or the launcher's folder has only parts of checkpoints.
struct RunMachines {
  std::set<std::string> names;
  bool may_be_distributed = false;
};

// For a resumed run without a folder on the launcher: checks that some machine has a part of a
// checkpoint. kConfig if none has; creates nothing. Errors as those of WorkerGroup. REQUIRES:
// check_reachable() for the machines.
[[nodiscard]] Result<void> require_run_somewhere(const PreparedRun& run,
                                                 const TrainingRequest& request,
                                                 const RunMachines& machines,
                                                 const Log& log);

// Asks the machines for their folders, and raises the fencing token of run.lock above those that
// were used in them. A new run creates absent folders; a resumed one does not. Sets run.stores and,
// for a resumed run, run.restore_point, which stays empty if no checkpoint is known anywhere.
// kConfig for a new run if a machine's folder contains a run; kCorrupt if no checkpoint is usable;
// kPeer if another launcher uses a folder, or if the newest checkpoint needs a machine that does
// not answer. REQUIRES: run.lock holds the launcher's folder; check_reachable() for the machines.
[[nodiscard]] Result<void> find_shards(PreparedRun& run,
                                       const TrainingRequest& request,
                                       const RunMachines& machines,
                                       const Log& log);

// Creates the machines' folders that are still absent, moves the parts of run.restore_point to the
// ranks that read them, and sets run.resume_folders. Logs a warning for each folder without
// space for a save. REQUIRES: run.plan is set.
[[nodiscard]] Result<void> deliver_shards(PreparedRun& run,
                                          const TrainingRequest& request,
                                          const Log& log);

// Deletes, in the machines' own folders, the checkpoints that the launcher's folder no longer has.
// Errors as those of WorkerGroup. REQUIRES: the run's training has ended.
[[nodiscard]] Result<void> prune_shards(const PreparedRun& run,
                                        const TrainingRequest& request,
                                        const Log& log);

}  // namespace motley
