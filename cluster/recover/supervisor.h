// A training that outlasts the loss of a process or a machine.
#pragma once

#include <cstdio>

#include "base/log.h"
#include "base/result.h"
#include "cluster/run/prepare.h"
#include "cluster/run/training_run.h"

namespace motley {

struct RunResult {
  TrainingSummary summary;
  int restarts = 0;  // in all
  int moves = 0;     // to better plans
};

// run_training, and after a launch that decide() (cluster/recover/decide.h) lets go on another one,
// from the newest checkpoint: with the plan of the start where all of its machines answer; else
// with a new one for those that do, made of the profiles that `run` has. What happened is said in
// one line, and what it cost with the first step after it. Machines that were left out are asked
// again at every restart, and taken back. A launch that has learned of a better plan, where the
// request lets it move, ends after a saved step, and the next one goes on with that plan. `run` is
// the last launch's when it returns. The error is that of the last launch.
[[nodiscard]] Result<RunResult> run_with_restarts(PreparedRun& run,
                                                  const TrainingRequest& request,
                                                  Log& log,
                                                  std::FILE* progress_out);

}  // namespace motley
