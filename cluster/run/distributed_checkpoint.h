// What belongs to preparing a run whose machines may have run folders of their own: looking for the
// checkpoint that it goes on from, wherever its parts lie, and bringing them to where they are
// needed.
#pragma once

#include <set>
#include <string>

#include "base/log.h"
#include "base/result.h"
#include "cluster/run/prepare.h"

namespace motley {

// The machines that the run may use, and whether one of them could have a folder of its own, or the
// launcher's holds only parts of checkpoints.
struct RunMachines {
  std::set<std::string> names;
  bool may_be_distributed = false;
};

// Where the launcher has no folder to go on from, a machine may: kConfig when none does, and
// nothing is made anywhere. Errors as those of WorkerGroup. REQUIRES: check_reachable() for the
// machines.
[[nodiscard]] Result<void> require_run_somewhere(const PreparedRun& run,
                                                 const TrainingRequest& request,
                                                 const RunMachines& machines,
                                                 const Log& log);

// Asks the machines for their folders, makes those that are absent where a run is to begin, and
// raises the launch above all that were in them. Sets run.stores and, where the run is to go on,
// run.restore_point; nothing of it where no checkpoint is known anywhere. kConfig where a run is to
// begin and a machine's folder holds one; kCorrupt where nothing can be used; kPeer where another
// launcher is at work, or a machine that is away has what the newest checkpoint needs.
// REQUIRES: run.lock holds the launcher's folder; check_reachable() for the machines.
[[nodiscard]] Result<void> look_for_parts(PreparedRun& run,
                                          const TrainingRequest& request,
                                          const RunMachines& machines,
                                          const Log& log);

// Makes the machines' folders that are still absent, and sets run.resume_folders. REQUIRES:
// run.plan is made.
[[nodiscard]] Result<void> bring_parts(PreparedRun& run,
                                       const TrainingRequest& request,
                                       const Log& log);

// Leaves of the checkpoints on machines with folders of their own those that the launcher's folder
// holds. Errors as those of WorkerGroup. REQUIRES: the run's training has ended.
[[nodiscard]] Result<void> prune_parts(const PreparedRun& run,
                                       const TrainingRequest& request,
                                       const Log& log);

}  // namespace motley
