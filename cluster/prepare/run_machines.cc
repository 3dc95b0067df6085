#include "cluster/prepare/run_machines.h"

#include <algorithm>

#include "checkpoint/checkpoint.h"
#include "checkpoint/replication/checkpoint_metadata.h"
#include "cluster/launch/transport_choice.h"
#include "cluster/launch/workers.h"
#include "cluster/planning/check_plan.h"
#include "cluster/planning/resolve_plan.h"
#include "cluster/replication/machine_stores.h"

namespace motley {

RunMachines run_machines(const TrainingRequest& request, const PlanningInput& planning) {
  const auto& plan = request.planning.plan;
  RunMachines machines;
  machines.names = plan ? machines_in_use(*plan)
                        : machines_to_plan_with(planning.cluster, planning.options.pins);
  const auto checkpoints = list_checkpoints(request.planning.config.run.dir);
  machines.may_be_distributed =
      capabilities_of(planning.cluster).keeps_state &&
      (may_have_own_folders(planning.cluster, machines.names) ||
       std::ranges::any_of(checkpoints, is_partial_copy, &CheckpointInfo::folder));
  return machines;
}

Result<void> check_machines(const TrainingRequest& request,
                            const PlanningInput& planning,
                            const RunMachines& machines) {
  MOTLEY_ASSIGN([[maybe_unused]] const auto transport,
                choose_transport(planning.cluster, machines.names, request.planning.config.comm));
  return check_usable(planning.cluster, machines.names, planning.model,
                      request.machines.stage_program, request.machines.have_answered);
}

}  // namespace motley
