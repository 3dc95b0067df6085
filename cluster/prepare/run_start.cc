#include "cluster/prepare/run_start.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "checkpoint/replication/checkpoint_metadata.h"
#include "cluster/planning/planning_options.h"
#include "cluster/prepare/resume_checks.h"
#include "cluster/replication/shards_progress.h"
#include "cluster/run/data_fingerprint.h"
#include "record/run_folder.h"
#include "run_config/config_io.h"
#include "run_config/epochs.h"
#include "run_config/evaluation_rules.h"
#include "training/optimizer/rate_change.h"

namespace motley {
namespace {

// Runs of earlier versions lack this key.
bool has_legacy_rates(const Manifest& manifest) {
  const Json& config = manifest.config;
  return !config.contains("train") || !config["train"].contains("schedule_steps");
}

Result<CheckpointInfo> checkpoint_to_resume(const TrainingRequest& request,
                                            const FoundShards& found,
                                            const RunFolder& folder) {
  const auto checkpoints = list_checkpoints(folder.dir());
  // A dry run does not query machines for their parts.
  if (request.dry_run && !checkpoints.empty() && is_partial_copy(checkpoints.back().folder)) {
    return checkpoints.back();
  }
  FilesProgress progress(request.display.line);
  if (!found.restore_point) return folder.newest_checkpoint(&progress);
  return CheckpointInfo{found.restore_point->step_metadata.step(), found.restore_point->folder};
}

// The configuration of the run when it saved the checkpoint.
Result<Config> config_before(const Manifest& manifest, const std::filesystem::path& folder) {
  MOTLEY_ASSIGN(Config config, saved_config_from_json(manifest.config, folder.string()));
  // Checkpoints of earlier versions have the plan's micro-batch only in the fingerprint.
  if (manifest.state.plan) config.train.micro_batch = manifest.state.plan->micro_batch;
  return config;
}

// The requested configuration with the number of its steps.
Result<Config> config_with_steps(const TrainingRequest& request, const CheckedRequest& checked) {
  return with_steps_of_epochs(
      request.planning.config, request.origins,
      checked.data ? std::optional(checked.data->epoch_samples) : std::nullopt);
}

// The requested configuration, with what it leaves open as in the run so far.
Result<Config> config_now(const Config& before,
                          const TrainingRequest& request,
                          const CheckedRequest& checked) {
  TrainingRequest asked = request;
  TrainConfig& train = asked.planning.config.train;
  const bool is_same_length =
      train.epochs == before.train.epochs && train.global_batch == before.train.global_batch;
  // The launcher does not see the data; that of the run had these steps.
  if (!checked.data && train.steps == 0 && is_same_length) {
    train.steps = before.train.steps;
  }
  MOTLEY_ASSIGN(Config config, config_with_steps(asked, checked));
  config = with_choices_of(before, std::move(config));
  if (is_default(request.origins, "train.warmup_steps")) {
    config.train.warmup_steps = std::min(before.train.warmup_steps, config.train.steps);
  }
  return config;
}

// Refuses changes that were not allowed, before anything is started.
Result<void> check_changes(const Manifest& manifest,
                           const Config& before,
                           const Config& now,
                           const TrainingRequest& request,
                           const RunFolder& folder,
                           const Log& log) {
  const RateHistory rates{before.train, has_legacy_rates(manifest), manifest.state.step};
  const bool same_rates = has_same_rates_so_far(rates, now.train);
  std::vector<std::string> changes = changes_of(before, now, same_rates);
  if (manifest.state.plan && request.planning.plan) {
    const auto change = rounding_change(*manifest.state.plan, folder, *request.planning.plan);
    if (change && request.resume->may_round_differently) {
      log.warn(
          fmt::format("the plan has {}: sums are rounded differently from this step on", *change));
    } else if (change) {
      changes.push_back("the plan has " + *change);
    }
  }
  const auto jump = rate_jump(rates, now.train);
  const auto hint = option_without_jump(rates, now.train);
  if (!changes.empty() && jump) changes.push_back(*jump);
  if (!request.resume->allow_changes) MOTLEY_TRY(refuse_changes(changes, hint.value_or("")));
  if (!changes.empty()) {
    log.warn(fmt::format("the run continues with {}{}", fmt::join(changes, ", "),
                         jump && hint ? "; " + *hint : ""));
  }
  if (const auto line = convention_change(rates, now.train)) log.warn(*line);
  return {};
}

// The planner's input for the resumed run.
Result<PlanningInput> planning_of(const Config& config,
                                  PlanningInput planning,
                                  int stages,
                                  const RunFolder& folder) {
  if (config.run.threads == 0) {  // the ranks' thread counts differ
    const auto plan = read_plan(folder.plan_path());
    if (plan.ok()) planning.cluster = with_threads_of(*plan, std::move(planning.cluster));
  }
  Pins pins = std::move(planning.options.pins);  // without machines that were left out
  MOTLEY_ASSIGN(planning.options, plan_options(config, planning.model, stages));
  planning.options.pins = std::move(pins);
  return planning;
}

// The run's record of evaluations, if later ones can be compared with it.
std::optional<EvaluationRecord> comparable_evaluations(const CheckpointState& state,
                                                       const Config& before,
                                                       const Config& now,
                                                       const CheckedRequest& checked,
                                                       const Log& log) {
  if (!state.evaluations || !compares_evaluations(now)) return std::nullopt;
  const bool is_other_data =
      state.data && checked.data &&
      checked.data->identity != DataIdentity{state.data->bytes, state.data->hash};
  if (!is_other_data && has_same_evaluations(before, now)) return state.evaluations;
  if (state.evaluations->best) {
    log.warn(
        fmt::format("evaluations are compared anew: {} is of other held-out samples or of "
                    "another loss",
                    best_text(*state.evaluations->best)));
  }
  return std::nullopt;
}

// REQUIRES: found.resumes.
Result<RunStart> start_from_checkpoint(const TrainingRequest& request,
                                       const CheckedRequest& checked,
                                       const FoundShards& found,
                                       const Log& log) {
  const RunFolder folder(request.planning.config.run.dir);
  MOTLEY_ASSIGN(const CheckpointInfo checkpoint, checkpoint_to_resume(request, found, folder));
  MOTLEY_ASSIGN(const Manifest manifest, read_manifest(checkpoint.folder));
  const CheckpointState& state = manifest.state;
  MOTLEY_ASSIGN(const Config before, config_before(manifest, checkpoint.folder));
  MOTLEY_ASSIGN(const Config config, config_now(before, request, checked));
  MOTLEY_TRY(check_resume(state, checkpoint.folder, config, checked.planning.model));
  MOTLEY_TRY(check_changes(manifest, before, config, request, folder, log));
  ResumedCheckpoint resumed{.info = checkpoint};
  if (!request.resume->allow_changes) resumed.data = state.data;
  if (resumed.data && checked.data) {
    MOTLEY_TRY(check_same_data(*resumed.data, checked.data->identity, config.data));
  }
  resumed.evaluations = comparable_evaluations(state, before, config, checked, log);
  if (resumed.evaluations) {
    MOTLEY_TRY(check_not_stopped_early(*resumed.evaluations, state.step, config.train));
  }
  MOTLEY_ASSIGN(PlanningInput planning,
                planning_of(config, checked.planning, request.planning.stages, folder));
  std::optional<SavedPlanning> saved;
  if (state.plan) saved = {*state.plan, before};
  return RunStart{.config = config,
                  .planning = std::move(planning),
                  .steps = {.first = state.step + 1},
                  .resumed = std::move(resumed),
                  .saved = std::move(saved)};
}

}  // namespace

Result<RunStart> start_of_run(const TrainingRequest& request,
                              const CheckedRequest& checked,
                              const FoundShards& found,
                              const Log& log) {
  RunStart start{.planning = checked.planning};
  if (found.resumes) {
    MOTLEY_ASSIGN(start, start_from_checkpoint(request, checked, found, log));
  } else {
    MOTLEY_ASSIGN(start.config, config_with_steps(request, checked));
  }
  if (start.config.train.epochs > 0 && checked.data) {
    start.counted_data = checked.data->identity;
    log.info(epochs_text(start.config.train, checked.data->epoch_samples));
  }
  if (const auto idle = idle_steps(start.config.train, start.steps.first)) log.warn(*idle);
  if (request.stop_after > 0 && request.stop_after < start.steps.first) {
    return Error{ErrorCode::kUsage,
                 fmt::format("--stop-after {} is in the past", request.stop_after),
                 fmt::format("the next step is {}", start.steps.first), ""};
  }
  const std::int64_t all = start.config.train.steps;
  start.steps.last = request.stop_after > 0 ? std::min(request.stop_after, all) : all;
  return start;
}

}  // namespace motley
