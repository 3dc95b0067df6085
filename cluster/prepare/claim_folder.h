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
  // As CheckedRequest::resumes. A save that an earlier launch left may have been committed.
  bool resumes = false;
};

// Creates the folder of a new run and locks it, before it is read further or changed; from then on
// `log` is also written to it. Commits a save that an earlier launch left
// (cluster/run/left_save.h), unless checkpoints may be distributed: then find_shards() does. A dry
// run only checks that a new run may begin there. kConfig if a new run's folder contains a run, and
// if that of a resumed run does not exist here or on any other machine; kPeer if another launcher
// uses it.
[[nodiscard]] Result<ClaimedFolder> claim_folder(const TrainingRequest& request,
                                                 const CheckedRequest& checked,
                                                 Log& log);

// What is certain before machines join: a new run's folder has no run, and the files of the run are
// here.
[[nodiscard]] Result<void> check_before_machines_join(const TrainingRequest& request);

}  // namespace motley
