#include "cluster/prepare/find_shards.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <utility>
#include <vector>

#include "base/system/files.h"
#include "checkpoint/checkpoint.h"
#include "cluster/run/inventory_request.h"
#include "cluster/run/left_save.h"

namespace motley {
namespace {

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
Result<void> check_is_newest(const std::optional<RestorePoint>& point,
                             const RunFolder& folder,
                             const std::vector<std::string>& away) {
  const auto known = list_checkpoints(folder.dir());
  if (away.empty() || known.empty() || !point) return {};
  const std::int64_t step = point->step_metadata.step();
  if (step >= known.back().step) return {};
  return Error{
      ErrorCode::kPeer,
      fmt::format("the checkpoint of step {} needs a machine that does not answer: {}",
                  known.back().step, fmt::join(away, ", ")),
      "some of its files are on no other machine; checkpoint.copies is the number of copies",
      fmt::format("switch it on; without it in the cluster file the run continues from step {}",
                  step)};
}

// Commits what an earlier launch left to commit, by the reports in all folders.
void commit_left(const StoreInventory& stores, const RunFolder& folder, const Log& log) {
  std::vector<LeftReport> elsewhere;
  for (const auto& [id, store] : stores.by_id) {
    if (id.empty()) continue;
    elsewhere.insert(elsewhere.end(), store.contents.left.begin(), store.contents.left.end());
  }
  (void)commit_left_save(folder.dir(), log, elsewhere);
}

// For a run that was started but has no checkpoint.
Result<void> prepare_new_run(const ClaimedFolder& claimed) {
  MOTLEY_ASSIGN(const bool is_run, path_exists(claimed.folder.config_path()));
  if (!is_run) return claimed.folder.newest_checkpoint().error();
  return claimed.folder.create(claimed.lock->number());
}

}  // namespace

bool asks_for_shards(const TrainingRequest& request, const RunMachines& machines) {
  return machines.may_be_distributed && !request.dry_run;
}

Result<FoundShards> find_shards(const TrainingRequest& request,
                                const CheckedRequest& checked,
                                const ClaimedFolder& claimed,
                                const Log& log) {
  FoundShards found{.resumes = checked.resumes};
  if (!asks_for_shards(request, checked.machines)) return found;
  MOTLEY_TRY(check_machines(request, checked.planning, checked.machines));
  const std::string launch = claimed.lock->launch();
  InventoryRequest query =
      inventory_request(request, checked.planning.cluster, checked.machines.names, launch);
  // A run that cannot be resumed creates no folders.
  if (request.resume) query.if_absent = IfAbsent::kLeave;
  bool has_asked = false;
  const QueryStores ask = [&](const StoreQuery& store_query) -> Result<StoreInventory> {
    MOTLEY_ASSIGN(found.stores, inventory_stores(query, store_query, log));
    if (request.resume && !std::exchange(has_asked, true)) {
      commit_left(found.stores, claimed.folder, log);
    }
    return found.stores;
  };
  if (request.resume) {
    MOTLEY_ASSIGN(found.restore_point, find_restore_point(claimed.folder.dir(), launch, ask, log));
    MOTLEY_TRY(check_is_newest(found.restore_point, claimed.folder, request.resume->away));
  } else {
    MOTLEY_ASSIGN(const StoreInventory stores, ask({}));
    MOTLEY_TRY(check_no_run(stores));
  }
  MOTLEY_TRY(claimed.lock->advance_past(found.stores.last_launch(), log));
  found.resumes = found.restore_point.has_value();
  if (request.resume && !found.resumes) MOTLEY_TRY(prepare_new_run(claimed));
  return found;
}

}  // namespace motley
