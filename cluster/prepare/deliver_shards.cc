#include "cluster/prepare/deliver_shards.h"

#include <algorithm>
#include <set>
#include <utility>

#include "cluster/launch/workers.h"
#include "cluster/replication/free_space.h"
#include "cluster/replication/plan_transfers.h"
#include "cluster/replication/transfers.h"
#include "cluster/run/inventory_request.h"
#include "run_config/optimizers.h"

namespace motley {
namespace {

// Whether a machine has no folder for the run yet.
bool has_absent_folder(const StoreInventory& stores) {
  return std::ranges::any_of(stores.by_id, [](const auto& store) {
    const StoreLocation& location = store.second.contents.location;
    return !location.is_shared && location.id.empty();
  });
}

// A folder gets its id when it is created: ids of absent folders are looked up by their machine.
RestorePoint with_new_ids(RestorePoint point,
                          const StoreInventory& before,
                          const StoreInventory& after) {
  for (auto& [file, locations] : point.locations) {
    for (StoreId& id : locations) {
      if (!after.by_id.contains(id)) id = after.of(before.by_id.at(id).machines.front());
    }
  }
  return point;
}

}  // namespace

Result<RunShards> deliver_shards(const TrainingRequest& request,
                                 const PlannedRun& planned,
                                 const FoundShards& found,
                                 const std::string& launch,
                                 const Log& log) {
  RunShards shards{.stores = found.stores, .restore_point = found.restore_point};
  if (has_absent_folder(found.stores)) {
    const std::set<std::string> all = found.stores.machines();
    MOTLEY_ASSIGN(
        shards.stores,
        inventory_stores(inventory_request(request, planned.cluster, all, launch), {}, log));
    if (found.restore_point) {
      shards.restore_point = with_new_ids(*found.restore_point, found.stores, shards.stores);
    }
  }
  if (!shards.restore_point) return shards;
  const auto parameters = parameters_by_store(planned.plan, planned.model, shards.stores);
  const auto transfers =
      plan_transfers(*shards.restore_point, parameters, shards.stores, planned.cluster);
  const int moments = moments_per_parameter(planned.config.train);
  for (const std::string& line :
       saves_without_space(save_bytes(parameters, planned.model, moments), shards.stores)) {
    log.warn(line);
  }
  const std::set<std::string> machines = machines_in_use(planned.plan);
  MOTLEY_ASSIGN(
      shards.resume_folders,
      transfer_files(transfers, inventory_request(request, planned.cluster, machines, launch),
                     shards.stores, planned.config, log));
  return shards;
}

}  // namespace motley
