// Plans a run that starts: with the given plan, or with one for its measured devices.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "cluster/prepare/claim_folder.h"
#include "cluster/prepare/run_start.h"
#include "cluster/run/ready_run.h"
#include "cluster/run/training_request.h"

namespace motley {

// Settles "auto" devices and, unless the plan is given, measures devices if necessary, writes
// profile.json (not in a dry run) and plans; a resumed run keeps the rounding of its sums if
// possible, and otherwise logs the change. Errors are those of settle_devices(), measure_devices(),
// plan_like(), check_plan_precision(), RunLock::confirm() and choose_transport(). REQUIRES:
// check_machines().
[[nodiscard]] Result<PlannedRun> plan_run(const TrainingRequest& request,
                                          const RunStart& start,
                                          const ClaimedFolder& claimed,
                                          const Log& log);

}  // namespace motley
