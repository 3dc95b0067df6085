#include "cluster/replication/prune.h"

#include <utility>
#include <vector>

#include "base/json.h"
#include "cluster/launch/worker_group.h"
#include "cluster/launch/workers.h"

namespace motley {

Result<void> prune_stores(const std::set<std::int64_t>& kept,
                          const InventoryRequest& request,
                          const StoreInventory& stores,
                          const Log& log) {
  std::vector<WorkerSpec> workers;
  for (const auto& [id, store] : stores.by_id) {
    if (id.empty() || store.machines.empty()) continue;
    const Machine& machine = *request.cluster.find(store.machines.front());
    WorkerSpec worker{machine.name, machine, store_program_on(machine, request.program), {}};
    worker.job.verb = "store";
    worker.job.launch = request.launch;
    worker.job.run_dir = store.contents.location.dir.string();
    worker.job.options = Json{{"prune", kept}};
    workers.push_back(std::move(worker));
  }
  if (workers.empty()) return {};
  WorkerGroup group(std::move(workers), {.start_timeout_s = request.start_timeout_s}, log);
  return group.run([](int, const Json&) { return Result<void>(); });
}

}  // namespace motley
