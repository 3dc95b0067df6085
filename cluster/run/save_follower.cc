#include "cluster/run/save_follower.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/json.h"
#include "cluster/run/rank_folders.h"
#include "plan/rank_names.h"
#include "protocol/protocol.h"

namespace motley {

SaveFollower::SaveFollower(const ReadyRun& run, FolderReplicators::Send send, EmitEvent emit_event)
    : run_(run),
      emit_event_(std::move(emit_event)),
      committer_(run.folder.dir(),
                 run.launch,
                 run.planned.config,
                 run.planned.model,
                 run.planned.plan,
                 ranks_elsewhere(run.planned.plan, run.shards.stores)),
      replicators_(run, std::move(send)) {
  committer_.retain_always(replicators_.safe_steps());
}

void SaveFollower::set_data(DataFingerprint fingerprint) {
  const Result<void> written = committer_.set_data(std::move(fingerprint));
  if (written.ok()) return;
  warn(fmt::format("a save that this launcher could not commit would be lost: {}: {}",
                   written.error().what, written.error().cause));
}

Result<void> SaveFollower::on_event(int worker, const std::string& kind, const Json& event) {
  if (kind == "shard") return end_save(committer_.add_shard(worker, event));
  if (kind == "shard_failed") return end_save(committer_.add_failure(worker, event));
  if (kind == "copied") return on_copied(worker, event);
  if (kind == "copy_failed") return on_copy_failed(worker, event);
  if (kind == "keep_failed") on_store_failed(worker, event);
  if (kind == "keeper") replicators_.add(worker);
  return {};
}

Result<void> SaveFollower::end_save(Result<std::optional<SaveOutcome>> ended) {
  MOTLEY_ASSIGN(const std::optional<SaveOutcome> outcome, std::move(ended));
  if (!outcome) return {};
  unsaved_ = outcome->failure;
  if (!outcome->folder) replicators_.notify_dropped(outcome->step);
  if (outcome->folder) {
    MOTLEY_TRY(replicators_.notify_committed(*outcome->folder));
    machines_have_stale_ = false;
    committer_.retain_always(replicators_.safe_steps());
    checkpoint_ = *outcome->folder;
    emit_event_(RunEventKind::kCheckpoint, outcome->step,
                fmt::format("saved {}", outcome->folder->string()), -1);
  } else {
    const std::string where = outcome->failed_rank
                                  ? rank_name(run_.planned.plan, Rank{*outcome->failed_rank}) + ": "
                                  : "";
    const std::string way_out =
        unsaved_->remedy.empty() ? "" : "; before the next save, " + unsaved_->remedy;
    emit_event_(
        RunEventKind::kCheckpointFailed, outcome->step,
        fmt::format("step {} was not saved: {}{}: {}. {}, and the run continues{}", outcome->step,
                    where, unsaved_->what, unsaved_->cause, last_saved_text(), way_out),
        outcome->failed_rank.value_or(-1));
  }
  if (outcome->stale) warn_of_stale(*outcome->stale);
  return {};
}

void SaveFollower::warn_of_stale(const Error& error) const {
  warn(fmt::format("an old checkpoint was not removed: {}: {}", error.what, error.cause));
}

// The files remain under the names of a save in progress, and are found there.
void SaveFollower::on_store_failed(int worker, const Json& event) const {
  const Error error = error_from_json(event);
  warn(fmt::format("{}: its part of a checkpoint could not be moved into place: {}: {}",
                   rank_name(run_.planned.plan, Rank{worker}), error.what, error.cause),
       worker);
}

Result<void> SaveFollower::on_copied(int worker, const Json& event) {
  const auto before = replicators_.safe_steps();
  MOTLEY_TRY(replicators_.add_copied(worker, event));
  if (replicators_.safe_steps() == before) return {};
  // The previous safe checkpoint may be removed.
  committer_.retain_always(replicators_.safe_steps());
  const std::size_t stood = list_checkpoints(run_.folder.dir()).size();
  if (const Result<void> pruned = committer_.prune(); !pruned.ok()) warn_of_stale(pruned.error());
  if (list_checkpoints(run_.folder.dir()).size() < stood) machines_have_stale_ = true;
  return {};
}

// A later save tries again. A checkpoint that was removed meanwhile needs no copies.
Result<void> SaveFollower::on_copy_failed(int worker, const Json& event) {
  MOTLEY_TRY(replicators_.add_failed(event));
  committer_.retain_always(replicators_.safe_steps());
  MOTLEY_ASSIGN(const std::int64_t step, json_get<std::int64_t>(event, "step", "a replicator"));
  const auto stand = list_checkpoints(run_.folder.dir());
  if (std::ranges::count(stand, step, &CheckpointInfo::step) == 0) return {};
  const Error error = error_from_json(event);
  warn(fmt::format("{}: no copy of its part of step {} could be made: {}: {}",
                   rank_name(run_.planned.plan, Rank{worker}), step, error.what, error.cause),
       worker);
  return {};
}

std::string SaveFollower::last_saved_text() const {
  const auto checkpoints = list_checkpoints(run_.folder.dir());
  if (checkpoints.empty()) return "No checkpoint exists yet";
  return fmt::format("The checkpoint of step {} remains", checkpoints.back().step);
}

std::optional<Error> SaveFollower::unsaved() const {
  if (!unsaved_) return {};
  Error error = *unsaved_;
  error.what = fmt::format("the last step was completed but not saved: {}", error.what);
  error.cause += ". " + last_saved_text();
  return error;
}

void SaveFollower::warn(const std::string& line, int rank) const {
  emit_event_(RunEventKind::kWarning, std::nullopt, line, rank);
}

}  // namespace motley
