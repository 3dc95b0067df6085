#include "cluster/run/resumption.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/system/files.h"
#include "checkpoint/checkpoint.h"
#include "cluster/replication/shards_progress.h"
#include "cluster/run/resume.h"
#include "run_config/config_io.h"
#include "training/optimizer/rate_change.h"

namespace motley {
namespace {

// Runs of earlier versions lack this key.
bool has_legacy_rates(const Manifest& manifest) {
  const Json& config = manifest.config;
  return !config.contains("train") || !config["train"].contains("schedule_steps");
}

// Refuses changes that were not allowed, before anything is started.
Result<void> check_changes(const SavedPlanning& saved,
                           const RateHistory& rates,
                           const PreparedRun& run,
                           const TrainingRequest& request,
                           const Log& log) {
  std::vector<std::string> changes = changes_of(saved.config, run.config);
  if (saved.fingerprint && request.plan) {
    const auto change = rounding_change(*saved.fingerprint, run.folder, *request.plan);
    if (change && request.may_round_differently) {
      log.warn(
          fmt::format("the plan has {}: sums are rounded differently from this step on", *change));
    } else if (change) {
      changes.push_back("the plan has " + *change);
    }
  }
  const auto jump = rate_jump(rates, run.config.train);
  const auto hint = option_without_jump(rates, run.config.train);
  if (!changes.empty() && jump) changes.push_back(*jump);
  if (!request.allow_changes) MOTLEY_TRY(refuse_changes(changes, hint.value_or("")));
  if (!changes.empty()) {
    log.warn(fmt::format("the run continues with {}{}", fmt::join(changes, ", "),
                         jump && hint ? "; " + *hint : ""));
  }
  if (const auto line = convention_change(rates, run.config.train)) log.warn(*line);
  return {};
}

Result<CheckpointInfo> checkpoint_to_resume(const PreparedRun& run,
                                            const TrainingRequest& request) {
  const auto checkpoints = list_checkpoints(run.folder.dir());
  // A dry run does not query machines for their parts.
  if (request.dry_run && !checkpoints.empty() && is_partial_copy(checkpoints.back().folder)) {
    return checkpoints.back();
  }
  FilesProgress progress(request.line);
  if (!run.restore_point) return run.folder.newest_checkpoint(&progress);
  return CheckpointInfo{run.restore_point->step_metadata.step(), run.restore_point->folder};
}

}  // namespace

Result<bool> is_resume(const TrainingRequest& request,
                       const RunFolder& folder,
                       const RunMachines& machines) {
  if (!request.resume) return false;
  if (machines.may_be_distributed && !request.dry_run) return true;  // find_shards() determines it
  MOTLEY_ASSIGN(const bool is_run, path_exists(folder.config_path()));
  if (!is_run || !list_checkpoints(folder.dir()).empty()) return true;
  MOTLEY_TRY(require_all_count(folder.dir()));
  return false;
}

Result<bool> look_for_checkpoint(PreparedRun& run,
                                 const TrainingRequest& request,
                                 const RunMachines& machines,
                                 const Log& log) {
  MOTLEY_TRY(find_shards(run, request, machines, log));
  if (!request.resume || run.restore_point) return request.resume;
  MOTLEY_ASSIGN(const bool is_run, path_exists(run.folder.config_path()));
  if (!is_run) return run.folder.newest_checkpoint().error();
  MOTLEY_TRY(run.folder.create(run.lock->number()));
  return false;
}

Result<SavedPlanning> resume(PreparedRun& run,
                             const std::optional<DataIdentity>& data,
                             const TrainingRequest& request,
                             const Log& log) {
  MOTLEY_ASSIGN(run.resume_from, checkpoint_to_resume(run, request));
  MOTLEY_ASSIGN(const Manifest manifest, read_manifest(run.resume_from->folder));
  const CheckpointState& saved = manifest.state;
  MOTLEY_TRY(check_resume(saved, run.resume_from->folder, run.config, run.model));
  run.first_step = saved.step + 1;
  SavedPlanning planning{.fingerprint = saved.plan};
  MOTLEY_ASSIGN(planning.config,
                saved_config_from_json(manifest.config, run.resume_from->folder.string()));
  // Checkpoints of earlier versions have the plan's micro-batch only in the fingerprint.
  if (saved.plan) planning.config.train.micro_batch = saved.plan->micro_batch;
  run.config = with_choices_of(planning.config, run.config);
  if (is_default(request.origins, "train.warmup_steps")) {
    run.config.train.warmup_steps =
        std::min(planning.config.train.warmup_steps, run.config.train.steps);
  }
  if (run.config.run.threads == 0) {  // the ranks' thread counts differ
    const auto plan = read_plan(run.folder.plan_path());
    if (plan.ok()) run.cluster = with_threads_of(*plan, std::move(run.cluster));
  }
  const RateHistory rates{planning.config.train, has_legacy_rates(manifest), saved.step};
  MOTLEY_TRY(check_changes(planning, rates, run, request, log));
  if (!request.allow_changes) run.saved_data = saved.data;
  if (run.saved_data && data) MOTLEY_TRY(check_same_data(*run.saved_data, *data, run.config.data));
  return planning;
}

}  // namespace motley
