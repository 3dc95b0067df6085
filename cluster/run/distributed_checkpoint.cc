#include "cluster/run/distributed_checkpoint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "cluster/launch/workers.h"
#include "cluster/replication/free_space.h"
#include "cluster/replication/plan_transfers.h"
#include "cluster/replication/prune.h"
#include "cluster/replication/transfers.h"
#include "run_config/optimizers.h"

namespace motley {
namespace {

// Before the launcher's folder is locked there is no launch number to send to the machines.
InventoryRequest inventory_request(const PreparedRun& run,
                                   const TrainingRequest& request,
                                   const std::set<std::string>& machines) {
  return {.cluster = run.cluster,
          .machines = machines,
          .run_dir = run.folder.dir(),
          .launch = run.lock ? run.lock->launch() : "",
          .program = request.stage_program,
          .start_timeout_s = request.config.comm.start_timeout_s,
          .line = request.line,
          .on_fault = request.on_fault};
}

// A new run never uses a folder that contains another run.
Result<void> check_no_run(const StoreInventory& stores) {
  for (const auto& [id, store] : stores.by_id) {
    if (id.empty() || store.contents.steps.empty()) continue;
    const std::string dir = store.contents.location.dir.string();
    return Error{
        ErrorCode::kConfig, fmt::format("{} already holds a run, {}", store.machines.front(), dir),
        fmt::format("its part of step {} is there; a run is never overwritten",
                    store.contents.steps.back()),
        "continue it with --resume, choose another folder by --run, or remove that folder there"};
  }
  return {};
}

// An older checkpoint is not used while a machine that is away may have the newest one: switching
// it on avoids repeating steps.
Result<void> check_is_newest(const PreparedRun& run, const std::vector<std::string>& away) {
  const auto known = list_checkpoints(run.folder.dir());
  if (away.empty() || known.empty() || !run.restore_point) return {};
  const std::int64_t step = run.restore_point->step_metadata.step();
  if (step >= known.back().step) return {};
  return Error{
      ErrorCode::kPeer,
      fmt::format("the checkpoint of step {} needs a machine that does not answer: {}",
                  known.back().step, fmt::join(away, ", ")),
      "some of its files are on no other machine; checkpoint.copies is the number of copies",
      fmt::format("switch it on; without it in the cluster file the run continues from step {}",
                  step)};
}

// Whether a machine has no folder for the run yet.
bool has_absent_folder(const StoreInventory& stores) {
  return std::ranges::any_of(stores.by_id, [](const auto& store) {
    const StoreLocation& location = store.second.contents.location;
    return !location.is_shared && location.id.empty();
  });
}

// A folder gets its id when it is created: ids of absent folders are looked up by their machine.
void replace_ids(RestorePoint& point, const StoreInventory& before, const StoreInventory& after) {
  for (auto& [file, locations] : point.locations) {
    for (StoreId& id : locations) {
      if (!after.by_id.contains(id)) id = after.of(before.by_id.at(id).machines.front());
    }
  }
}

}  // namespace

Result<void> require_run_somewhere(const PreparedRun& run,
                                   const TrainingRequest& request,
                                   const RunMachines& machines,
                                   const Log& log) {
  InventoryRequest query = inventory_request(run, request, machines.names);
  query.if_absent = IfAbsent::kLeave;
  MOTLEY_ASSIGN(const StoreInventory stores, inventory_stores(query, {}, log));
  const auto has_part = [](const auto& store) { return !store.second.contents.steps.empty(); };
  if (std::ranges::any_of(stores.by_id, has_part)) return {};
  return Error{
      ErrorCode::kConfig,
      fmt::format("there is no run {} on any machine", run.folder.dir().string()),
      fmt::format(
          "that folder does not exist here, and the folders of {} have no part of a checkpoint",
          fmt::join(machines.names, ", ")),
      "check --run; a new run starts without --resume"};
}

Result<void> find_shards(PreparedRun& run,
                         const TrainingRequest& request,
                         const RunMachines& machines,
                         const Log& log) {
  InventoryRequest query = inventory_request(run, request, machines.names);
  // A run that cannot be resumed creates no folders.
  if (request.resume) query.if_absent = IfAbsent::kLeave;
  const QueryStores ask = [&](const StoreQuery& store_query) -> Result<StoreInventory> {
    MOTLEY_ASSIGN(run.stores, inventory_stores(query, store_query, log));
    return run.stores;
  };
  if (request.resume) {
    MOTLEY_ASSIGN(run.restore_point,
                  find_restore_point(run.folder.dir(), run.lock->launch(), ask, log));
    MOTLEY_TRY(check_is_newest(run, request.away));
  } else {
    MOTLEY_ASSIGN(const StoreInventory stores, ask({}));
    MOTLEY_TRY(check_no_run(stores));
  }
  return run.lock->advance_past(run.stores.last_launch(), log);
}

Result<void> deliver_shards(PreparedRun& run, const TrainingRequest& request, const Log& log) {
  if (has_absent_folder(run.stores)) {
    const StoreInventory before = std::move(run.stores);
    MOTLEY_ASSIGN(run.stores,
                  inventory_stores(inventory_request(run, request, before.machines()), {}, log));
    if (run.restore_point) replace_ids(*run.restore_point, before, run.stores);
  }
  if (!run.restore_point) return {};
  const auto parameters = parameters_by_store(run.plan, run.model, run.stores);
  const auto transfers = plan_transfers(*run.restore_point, parameters, run.stores, run.cluster);
  const std::set<std::string> machines = machines_in_use(run.plan);
  for (const std::string& line : saves_without_space(
           save_bytes(parameters, run.model, moments_per_parameter(run.config.train)),
           run.stores)) {
    log.warn(line);
  }
  MOTLEY_ASSIGN(run.resume_folders,
                transfer_files(transfers, inventory_request(run, request, machines), run.stores,
                               run.config, log));
  return {};
}

Result<void> prune_shards(const PreparedRun& run, const TrainingRequest& request, const Log& log) {
  std::set<std::int64_t> kept;
  for (const CheckpointInfo& checkpoint : list_checkpoints(run.folder.dir())) {
    kept.insert(checkpoint.step);
  }
  const std::set<std::string> machines = machines_in_use(run.plan);
  return prune_stores(kept, inventory_request(run, request, machines), run.stores, log);
}

}  // namespace motley
