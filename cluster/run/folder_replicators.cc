#include "cluster/run/folder_replicators.h"

#include <utility>

#include "base/json.h"
#include "checkpoint/checkpoint.h"
#include "cluster/run/rank_folders.h"
#include "protocol/store_message.h"

namespace motley {

namespace {

std::set<std::pair<int, int>> copies_of(const PlannedRun& planned, const StoreInventory& stores) {
  std::set<std::pair<int, int>> copies;
  for (const auto& [replicator, job] :
       plan_replicators(planned.plan, stores, planned.cluster, planned.config.checkpoint.copies)) {
    for (const Rank to : job.copies_to) copies.emplace(replicator, to.value);
  }
  return copies;
}

std::optional<CheckpointMetadata> resumed_metadata(const RunShards& shards) {
  return shards.restore_point ? std::optional(shards.restore_point->step_metadata) : std::nullopt;
}

}  // namespace

FolderReplicators::FolderReplicators(const ReadyRun& run, Send send)
    : run_dir_(run.folder.dir()),
      resumed_(resumed_metadata(run.shards)),
      send_(std::move(send)),
      files_of_(files_by_replicator(run.planned.plan, run.shards.stores)),
      copies_(copies_of(run.planned, run.shards.stores)) {
  // The resumed checkpoint counts as safe until a later one has its copies.
  if (resumed_ && !copies_.empty()) safe_ = resumed_->step();
}

void FolderReplicators::add(int worker) {
  workers_.insert(worker);
  if (!resumed_) return;
  for (const Json& message :
       replication_messages({*resumed_, retained_steps(), /*adopts=*/true, files_of_})) {
    send_(worker, message);
  }
}

Result<void> FolderReplicators::notify_committed(const std::filesystem::path& folder) {
  if (workers_.empty()) return {};
  MOTLEY_ASSIGN(CheckpointMetadata step_metadata, read_metadata(folder));
  if (!copies_.empty()) copied_[step_metadata.step()] = {};
  const std::vector<Json> messages = replication_messages(
      {std::move(step_metadata), retained_steps(), /*adopts=*/false, files_of_});
  for (const int worker : workers_) {
    for (const Json& message : messages) send_(worker, message);
  }
  return {};
}

void FolderReplicators::notify_dropped(std::int64_t step) {
  for (const int worker : workers_) send_(worker, drop_message(step));
}

Result<void> FolderReplicators::add_copied(int worker, const Json& event) {
  MOTLEY_ASSIGN(const std::int64_t step, json_get<std::int64_t>(event, "step", "a replicator"));
  MOTLEY_ASSIGN(const std::int64_t to, json_get<std::int64_t>(event, "to", "a replicator"));
  const std::pair copy(worker, static_cast<int>(to));
  const auto waits = copied_.find(step);
  if (!copies_.contains(copy) || waits == copied_.end()) return {};
  waits->second.insert(copy);
  if (waits->second.size() < copies_.size()) return {};
  safe_ = step;
  copied_.erase(copied_.begin(), copied_.upper_bound(step));
  return {};
}

Result<void> FolderReplicators::add_failed(const Json& event) {
  MOTLEY_ASSIGN(const std::int64_t step, json_get<std::int64_t>(event, "step", "a replicator"));
  copied_.erase(step);
  return {};
}

std::set<std::int64_t> FolderReplicators::safe_steps() const {
  std::set<std::int64_t> steps;
  if (safe_) steps.insert(*safe_);
  if (!copied_.empty()) steps.insert(copied_.begin()->first);
  return steps;
}

std::vector<std::int64_t> FolderReplicators::retained_steps() const {
  std::vector<std::int64_t> steps;
  for (const CheckpointInfo& checkpoint : list_checkpoints(run_dir_)) {
    steps.push_back(checkpoint.step);
  }
  return steps;
}

}  // namespace motley
