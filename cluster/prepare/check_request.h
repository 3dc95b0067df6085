// Checks a request of a training, without starting a process or changing a file.
#pragma once

#include <optional>

#include "base/log.h"
#include "base/result.h"
#include "cluster/prepare/run_machines.h"
#include "cluster/run/training_request.h"
#include "data/source.h"
#include "partitioner/report/planning_input.h"

namespace motley {

struct CheckedRequest {
  PlanningInput planning;  // of resolve_plan()
  RunMachines machines;
  // Whether the run resumes from a checkpoint. A run that ended before its first checkpoint starts
  // again from step 1, even if this is requested. If checkpoints may be distributed, this is not
  // known before find_shards(), and true.
  bool resumes = false;
  // Of the data, if all machines are this one; nullopt on simulated devices too.
  std::optional<DataIdentity> data;
};

// Checks the configuration, the given plan or whether one can be made, the initial weights, and the
// data if the machines are this one. Errors are those of resolve_plan(), open_source() and
// check_initial_weights_here(); kUsage if a run on simulated devices is to be resumed.
[[nodiscard]] Result<CheckedRequest> check_request(const TrainingRequest& request, const Log& log);

}  // namespace motley
