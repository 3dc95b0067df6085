#include "cluster/run/prepare.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/system/files.h"
#include "checkpoint/checkpoint.h"
#include "cluster/diagnose/precision_check.h"
#include "cluster/launch/reachability.h"
#include "cluster/launch/workers.h"
#include "cluster/planning/check_plan.h"
#include "cluster/planning/planning_options.h"
#include "cluster/planning/resolve_plan.h"
#include "cluster/run/checkpoint_committer.h"
#include "cluster/run/distributed_checkpoint.h"
#include "cluster/run/predict.h"
#include "cluster/run/resumed_plan.h"
#include "cluster/run/resumption.h"
#include "cluster/run_record/run_report.h"
#include "data/source.h"
#include "run_config/config_io.h"
#include "training/optimizer/rate_change.h"

namespace motley {
namespace {

// Adds the key data.path to an error that names only the file.
Error with_key_of_path(const Error& error) {
  return error.key.empty() ? with_key(with_context(error, "data.path"), "data.path") : error;
}

// The stage with the first layers reads the data, all stages read the initial weights. If all
// stages start on this machine, both must exist here, so that a mistake is found before profiling.
// Nothing if they start elsewhere.
Result<std::optional<DataIdentity>> check_data(const TrainingRequest& request,
                                               const ModelSpec& model,
                                               bool resumes) {
  for (const Machine& machine : request.cluster.machines) {
    if (!machine.shell.empty()) return std::optional<DataIdentity>();
  }
  const Config config = with_absolute_paths(request.config);
  const auto source = open_source(config.data, model.sample, config.train.seed);
  if (!source.ok()) return with_key_of_path(source.error());
  if (!config.model.init_from.empty() && !resumes) {
    MOTLEY_ASSIGN(const auto weights, CheckpointReader::open(config.model.init_from));
  }
  return std::optional((*source)->identity());
}

RunMachines machines_of(const TrainingRequest& request,
                        const Cluster& cluster,
                        const PlanOptions& options) {
  RunMachines machines;
  machines.names =
      request.plan ? machines_in_use(*request.plan) : machines_to_plan_with(cluster, options.pins);
  const auto checkpoints = list_checkpoints(request.config.run.dir);
  machines.may_be_distributed =
      capabilities_of(cluster).keeps_state &&
      (may_have_own_folders(cluster, machines.names) ||
       std::ranges::any_of(checkpoints, is_partial_copy, &CheckpointInfo::folder));
  return machines;
}

// A transport that is not permitted between the machines is refused before profiling, whether or
// not the plan needs it.
Result<void> check_machines(const TrainingRequest& request,
                            const PreparedRun& run,
                            const RunMachines& machines) {
  MOTLEY_ASSIGN([[maybe_unused]] const auto transport,
                choose_transport(run.cluster, machines.names, request.config.comm));
  return check_usable(run.cluster, machines.names, run.model, request.stage_program,
                      request.have_answered);
}

// One warning here: the workers compare the existing references and do not report missing ones.
Result<void> warn_of_references(const ModelSpec& model, const Log& log) {
  MOTLEY_ASSIGN(const std::string missing, model.missing_references());
  if (!missing.empty()) log.warn(missing);
  return {};
}

// An existing run is not overwritten. If it has steps left, the error suggests resuming it.
Error with_resume(Error error, const RunFolder& folder, const TrainingRequest& request) {
  if (error.code != ErrorCode::kConfig) return error;
  const auto checkpoints = list_checkpoints(folder.dir());
  const bool is_done =
      !checkpoints.empty() && checkpoints.back().step >= request.config.train.steps;
  if (!capabilities_of(request.cluster).keeps_state) {
    error.remedy = "choose another folder with --run: a run on virtual devices cannot be resumed";
  } else if (!is_done && !request.commands.resume.empty()) {
    error.remedy += "\n" + request.commands.resume;
  }
  return error;
}

// Fails if the folder to resume does not exist: none is created for a mistyped name.
Result<void> require_run(const PreparedRun& run,
                         const TrainingRequest& request,
                         const RunMachines& machines,
                         const Log& log) {
  if (!machines.may_be_distributed) return run.folder.newest_checkpoint().error();
  MOTLEY_TRY(check_machines(request, run, machines));
  return require_run_somewhere(run, request, machines, log);
}

// Locks the folder for this launch, before it is read further or changed.
Result<void> take_folder(PreparedRun& run,
                         const TrainingRequest& request,
                         bool resumes,
                         const RunMachines& machines,
                         const Log& log) {
  MOTLEY_ASSIGN(const bool exists, path_exists(run.folder.dir()));
  if (resumes && !exists) MOTLEY_TRY(require_run(run, request, machines, log));
  MOTLEY_TRY(run.folder.make());
  MOTLEY_ASSIGN(RunLock lock, RunLock::acquire(run.folder.dir(), log));
  run.lock = std::make_unique<RunLock>(std::move(lock));
  if (!resumes) {
    Result<void> created = run.folder.create(run.lock->number());
    if (!created.ok()) return with_resume(std::move(created).error(), run.folder, request);
  }
  // The folder is locked, so partial files are of an earlier launch. With distributed checkpoints
  // they are retained: they may be the only copy of files committed on another machine.
  if (machines.may_be_distributed) return {};
  return prune_checkpoints(run.folder.dir(), /*rule=*/{}, run.lock->launch());
}

// 0 if the ranks differ: then only the plan contains the thread counts.
int threads_of_all(const Plan& plan) {
  const int threads = plan.ranks.front().threads;
  const auto has_as_many = [&](const RankPlan& rank) { return rank.threads == threads; };
  return std::ranges::all_of(plan.ranks, has_as_many) ? threads : 0;
}

// A simulated run reads no data and trains nothing, so there is nothing to save or resume.
Result<void> check_simulated_run(const TrainingRequest& request, const Log& log) {
  if (request.resume) {
    return Error{ErrorCode::kUsage, "a run on virtual devices cannot be resumed",
                 "it trains nothing and saves no checkpoints",
                 "start it in another folder with --run"};
  }
  log.info(
      fmt::format("{}; no data is read, no loss computed, no checkpoint saved", kVirtualNotice));
  log.info(kSimulatedLinksNotice);
  return {};
}

}  // namespace

std::int64_t last_step_of(const PreparedRun& run, const TrainingRequest& request) {
  const std::int64_t all = run.config.train.steps;
  return request.stop_after > 0 ? std::min(request.stop_after, all) : all;
}

Result<PreparedRun> prepare_run(const TrainingRequest& request, Log& log) {
  PreparedRun run;
  run.config = request.config;
  run.folder = RunFolder(request.config.run.dir);
  MOTLEY_ASSIGN(PlanningInput input, resolve_plan({.config = request.config,
                                                   .cluster = request.cluster,
                                                   .stages = request.stages,
                                                   .plan = request.plan,
                                                   .known_profile = request.known_profile}));
  run.model = input.model;
  run.cluster = input.cluster;
  const RunMachines machines = machines_of(request, run.cluster, input.options);
  MOTLEY_ASSIGN(bool is_resumed, is_resume(request, run.folder, machines));
  std::optional<DataIdentity> data;
  if (!capabilities_of(request.cluster).computes) {
    MOTLEY_TRY(check_simulated_run(request, log));
  } else {
    if (!is_resumed) MOTLEY_TRY(check_initial_weights_here(run.config, request.origins));
    MOTLEY_ASSIGN(data, check_data(request, run.model, is_resumed));
  }

  if (request.dry_run) {
    if (!is_resumed) MOTLEY_TRY(run.folder.check_new());
  } else {
    MOTLEY_TRY(take_folder(run, request, is_resumed, machines, log));
    MOTLEY_TRY(make_folders(run.folder.log_dir()));
    MOTLEY_TRY(log.write_to(run.folder.log_dir() / "motley.log"));
  }
  const bool is_scattered = machines.may_be_distributed && !request.dry_run;
  if (is_scattered) {
    MOTLEY_TRY(check_machines(request, run, machines));
    MOTLEY_ASSIGN(is_resumed, look_for_checkpoint(run, request, machines, log));
  }
  if (request.resume && !is_resumed) {
    log.info(fmt::format("{} has no checkpoint yet: the run starts with step 1",
                         run.folder.dir().string()));
  }
  SavedPlanning saved;
  if (is_resumed) {
    MOTLEY_ASSIGN(saved, resume(run, data, request, log));
    Pins pins = std::move(input.options.pins);  // without machines that were left out
    MOTLEY_ASSIGN(input.options, plan_options(run.config, run.model, request.stages));
    input.options.pins = std::move(pins);
    input.cluster = run.cluster;
  }
  if (const auto idle = idle_steps(run.config.train, run.first_step)) log.warn(*idle);
  if (request.stop_after > 0 && request.stop_after < run.first_step) {
    return Error{ErrorCode::kUsage,
                 fmt::format("--stop-after {} is in the past", request.stop_after),
                 fmt::format("the next step is {}", run.first_step), ""};
  }
  if (!request.dry_run) MOTLEY_TRY(check_can_write(run.folder.config_path()));
  if (!is_scattered) MOTLEY_TRY(check_machines(request, run, machines));
  MOTLEY_TRY(
      settle_devices(input, request.stage_program, request.config.comm.start_timeout_s, log));
  run.cluster = input.cluster;

  if (capabilities_of(run.cluster).computes) MOTLEY_TRY(warn_of_references(run.model, log));
  if (request.plan.has_value()) {
    run.plan = *request.plan;
    const auto other = plan_of_other_precision(run.config.train.precision, run.plan);
    if (other) log.warn(*other);
  } else {
    const Config& config = is_resumed ? without_initial_weights(run.config) : run.config;
    MOTLEY_TRY(measure_devices(input, config, request.stage_program, /*must_hold_model=*/true,
                               {.anew = request.measure_anew, .quiet = request.quiet}, log));
    run.profile = input.profile;
    MOTLEY_ASSIGN(run.plan, plan_like(saved, run, input.options));
    MOTLEY_TRY(check_plan_precision(run.config.train.precision, run.plan, run.profile));
    if (!request.dry_run) {
      MOTLEY_TRY(run.lock->confirm());
      MOTLEY_TRY(run.folder.write_profile(run.profile));
    }
    if (saved.fingerprint) log_plan_change(*saved.fingerprint, run, log);
  }
  run.config.train.micro_batch = run.plan.micro_batch;
  run.config.run.threads = threads_of_all(run.plan);
  MOTLEY_ASSIGN(run.transport,
                choose_transport(run.cluster, machines_in_use(run.plan), run.config.comm));
  if (request.dry_run) return run;
  // Pruning now frees space before the next save, for example after checkpoint.keep was lowered.
  // The newest checkpoint was verified, and all checks of the run have passed.
  MOTLEY_TRY(prune_to(run.folder.dir(),
                      retained_with(run.first_step - 1, list_checkpoints(run.folder.dir()),
                                    retention_policy(run.config.checkpoint)),
                      run.lock->launch()));
  MOTLEY_ASSIGN(run.id, run.folder.ensure_run_id(run.stores.run));
  MOTLEY_TRY(run.folder.write_config(run.config));
  MOTLEY_TRY(run.folder.write_plan(run.plan));
  write_prediction(run, input.options, log);
  MOTLEY_TRY(deliver_shards(run, request, log));
  return run;
}

}  // namespace motley
