#include "cluster/run/inventory_request.h"

namespace motley {

InventoryRequest inventory_request(const TrainingRequest& request,
                                   const Cluster& cluster,
                                   const std::set<std::string>& machines,
                                   const std::string& launch) {
  return {.cluster = cluster,
          .machines = machines,
          .run_dir = request.planning.config.run.dir,
          .launch = launch,
          .program = request.machines.stage_program,
          .start_timeout_s = request.planning.config.comm.start_timeout_s,
          .line = request.display.line,
          .on_fault = request.machines.on_fault};
}

}  // namespace motley
