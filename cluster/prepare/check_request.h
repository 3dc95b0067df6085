// Checks a request of a training, and which machines it may use.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "base/log.h"
#include "base/result.h"
#include "cluster/run/training_request.h"
#include "data/source.h"
#include "partitioner/report/planning_input.h"

namespace motley {

// The machines that the run may use, and whether its checkpoints may be distributed: a machine
// could have a folder of its own, or the launcher's folder has only parts of checkpoints.
struct RunMachines {
  std::set<std::string> names;
  bool may_be_distributed = false;
};

// The data as this machine sees it.
struct SeenData {
  DataIdentity identity;
  std::uint64_t epoch_samples = 0;  // for training
};

struct CheckedRequest {
  PlanningInput planning;  // of resolve_plan()
  RunMachines machines;
  // Whether the run resumes from a checkpoint. A run that ended before its first checkpoint starts
  // again from step 1, even if this is requested. If checkpoints may be distributed, this is not
  // known before find_shards(), and true.
  bool resumes = false;
  // If all machines are this one. On simulated devices and for other machines only if the length of
  // the run is given in epochs and this machine or one of those (ask_for_data()) can read
  // data.path: a run must then read the same.
  std::optional<SeenData> data;
};

// Checks the configuration, the given plan or whether one can be made, the initial weights, and the
// data if the machines are this one. Starts no process and changes no file. Errors are those of
// resolve_plan(), open_source() and check_initial_weights_here(); kUsage if a run on simulated
// devices is to be resumed.
[[nodiscard]] Result<CheckedRequest> check_request(const TrainingRequest& request, const Log& log);

// Checks that each machine is usable for the model, as check_usable(). A transport that is not
// permitted between them is refused, whether or not the plan needs it.
[[nodiscard]] Result<void> check_machines(const TrainingRequest& request,
                                          const PlanningInput& planning,
                                          const RunMachines& machines);

}  // namespace motley
