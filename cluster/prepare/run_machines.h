// The machines that a run may use.
#pragma once

#include <set>
#include <string>

#include "base/result.h"
#include "cluster/run/training_request.h"
#include "models/spec/model_spec.h"
#include "partitioner/report/planning_input.h"
#include "plan/cluster.h"

namespace motley {

// The machines that the run may use, and whether its checkpoints may be distributed: a machine
// could have a folder of its own, or the launcher's folder has only parts of checkpoints.
struct RunMachines {
  std::set<std::string> names;
  bool may_be_distributed = false;
};

// `planning`: that of the request.
[[nodiscard]] RunMachines run_machines(const TrainingRequest& request,
                                       const PlanningInput& planning);

// Checks that each machine is usable for the model, as check_usable(). A transport that is not
// permitted between them is refused, whether or not the plan needs it.
[[nodiscard]] Result<void> check_machines(const TrainingRequest& request,
                                          const PlanningInput& planning,
                                          const RunMachines& machines);

}  // namespace motley
