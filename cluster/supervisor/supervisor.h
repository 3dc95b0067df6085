// Supervisor: restarts a training that lost a process or a machine, from its newest checkpoint.
#pragma once

#include <cstdio>

#include "base/log.h"
#include "base/result.h"
#include "cluster/run/ready_run.h"
#include "cluster/run/training_request.h"
#include "cluster/run/training_run.h"

namespace motley {

struct RunResult {
  ReadyRun run;  // of the last launch
  TrainingSummary summary;
  int restarts = 0;  // total, counted or not
  int switches = 0;  // to better plans
};

// Calls run_training(), and again from the newest checkpoint after each launch that ended early, as
// long as decide() (cluster/supervisor/decide.h) says so. A restart uses the first plan if all
// machines of that plan answer, else a new plan for those that do, made from the profiles of
// `launch`. Machines that were left out are asked at every restart, and used again once they
// answer. Each failure is logged in one line; the first step after it logs what it cost. A launch
// that finds a better plan ends after a saved step if the request allows moves, and the next launch
// uses that plan. Blocks until the run has ended, and then releases the run folder. An error is the
// last launch's. `request`: the one of `launch`.
[[nodiscard]] Result<RunResult> run_with_restarts(Launch launch,
                                                  const TrainingRequest& request,
                                                  Log& log,
                                                  std::FILE* progress_out);

}  // namespace motley
