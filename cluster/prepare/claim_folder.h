// Claims the run folder for a launch.
#pragma once

#include <memory>

#include "base/log.h"
#include "base/result.h"
#include "checkpoint/lock/run_lock.h"
#include "cluster/prepare/check_request.h"
#include "cluster/run/training_request.h"
#include "record/run_folder.h"

namespace motley {

struct ClaimedFolder {
  RunFolder folder;
  std::unique_ptr<RunLock> lock;  // of the folder; null in a dry run
};

// Creates the folder of a new run and locks it, before it is read further or changed; from then on
// `log` is also written to it. A dry run only checks that a new run may begin there. kConfig if a
// new run's folder contains a run, and if that of a resumed run does not exist here or on any other
// machine; kPeer if another launcher uses it.
[[nodiscard]] Result<ClaimedFolder> claim_folder(const TrainingRequest& request,
                                                 const CheckedRequest& checked,
                                                 Log& log);

}  // namespace motley
