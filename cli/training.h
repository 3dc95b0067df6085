// A training with the options of `motley train`, for the commands that start one.
#pragma once

#include <vector>

#include "base/log.h"
#include "base/process/progress_line.h"
#include "base/result.h"
#include "cli/arguments.h"
#include "cluster/run/training_request.h"

namespace motley {

// Machines that come to a training by themselves. One object per training.
class JoiningMachines {
 public:
  virtual ~JoiningMachines() = default;

  // Waits for the machines and adds them to the request's cluster. `output` receives lines about
  // machines that join, leave and come back, from another thread, until end().
  [[nodiscard]] virtual Result<void> join(TrainingRequest& request,
                                          ProgressLine& line,
                                          const Log::Output& output) = 0;
  // After the training, or after join() has failed.
  virtual void end(const TrainingRequest& request,
                   const Result<void>& outcome,
                   ProgressLine& line,
                   const Log& log) = 0;
};

// `joining`: nullptr = none; else the cluster without --cluster is this machine with one device.
[[nodiscard]] Result<void> run_training(const Arguments& arguments, JoiningMachines* joining);

}  // namespace motley
