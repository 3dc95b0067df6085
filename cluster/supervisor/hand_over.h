// Machines that leave a run hand over what of its newest checkpoint no other machine has.
#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "base/log.h"
#include "base/result.h"
#include "checkpoint/lock/run_lock.h"
#include "cluster/run/ready_run.h"
#include "plan/cluster.h"

namespace motley {

// Copies the files of the newest checkpoint that only folders of `leaving` have to the launcher's
// folder, or, if no machine of the run sees that, to one of a machine that stays. No effect if all
// machines see the launcher's folder, or none stays. `run`: its last launch, which has ended;
// `cluster`: with all its machines; `program`: motley-stage here. Errors as find_checkpoint() and
// deliver(). REQUIRES: `lock` is of the run's folder.
[[nodiscard]] Result<void> hand_over(const std::set<std::string>& leaving,
                                     const ReadyRun& run,
                                     const Cluster& cluster,
                                     const std::filesystem::path& program,
                                     RunLock& lock,
                                     const Log& log);

}  // namespace motley
