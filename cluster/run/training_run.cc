#include "cluster/run/training_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/system/files.h"
#include "cluster/launch/worker_group.h"
#include "cluster/launch/workers.h"
#include "cluster/replication/prune.h"
#include "cluster/run/folder_replicators.h"
#include "cluster/run/inventory_request.h"
#include "cluster/run/rank_folders.h"
#include "cluster/run/resume_hint.h"
#include "cluster/run/run_follower.h"
#include "cluster/run_record/event_log.h"
#include "cluster/run_record/progress.h"
#include "record/metrics_file.h"

namespace motley {
namespace {

// Sets the folder to which each rank writes, and the one from which it resumes.
void give_folders(const ReadyRun& run, std::vector<WorkerSpec>& workers) {
  const StoreInventory& stores = run.shards.stores;
  const auto replicators = plan_replicators(run.planned.plan, stores, run.planned.cluster,
                                            run.planned.config.checkpoint.copies);
  for (WorkerSpec& worker : workers) {
    const auto replicator = replicators.find(worker.job.rank.value);
    if (replicator != replicators.end()) worker.job.replicator = replicator->second;
    worker.job.launch = run.launch;
    worker.job.store = stores.of(worker.machine.name);
    worker.job.run_id = run.id;
    if (const auto dir = stores.dirs.find(worker.machine.name); dir != stores.dirs.end()) {
      worker.job.run_dir = dir->second.string();
    }
    if (!run.resumed) continue;
    const CheckpointInfo& resumed = run.resumed->info;
    const auto view = run.shards.resume_folders.find(worker.job.store);
    // The path as the machine sees it: a shared folder may have another path there.
    const std::filesystem::path folder =
        view != run.shards.resume_folders.end()
            ? view->second
            : checkpoint_folder(worker.job.run_dir, resumed.step).parent_path() /
                  resumed.folder.filename();
    worker.job.resume_from = folder.string();
    worker.job.evaluations_begin_anew = !run.resumed->evaluations;
  }
}

// Deletes, in the machines' own folders, the checkpoints that the launcher's folder no longer has.
// A failure does not fail the run, which is complete.
void prune_machines(const ReadyRun& run, const TrainingRequest& request, const Log& log) {
  std::set<std::int64_t> kept;
  for (const CheckpointInfo& checkpoint : list_checkpoints(run.folder.dir())) {
    kept.insert(checkpoint.step);
  }
  const std::set<std::string> machines = machines_in_use(run.planned.plan);
  const Result<void> pruned =
      prune_stores(kept, inventory_request(request, run.planned.cluster, machines, run.launch),
                   run.shards.stores, log);
  if (pruned.ok()) return;
  log.warn(fmt::format("old checkpoints were not removed on other machines: {}: {}",
                       pruned.error().what, pruned.error().cause));
}

// A message that needs an action by the user is recorded as an event.
void log_directive(const StepDirective& directive,
                   std::int64_t step,
                   const ReadyRun& run,
                   Progress& progress,
                   const Log& log) {
  progress.clear();
  if (directive.finish) {
    log.info(directive.line);
  } else {
    EventLog(run.folder.events_path(), log).emit(RunEventKind::kWarning, step, directive.line);
  }
}

// A run that was asked to end reports the signal, even if the step under way was lost with a
// worker: no restart follows. Other errors are reported themselves.
Error ended_by(Error stop, const Error& found) {
  if (found.code != ErrorCode::kPeer && found.code != ErrorCode::kInternal) return found;
  stop.cause = fmt::format("the current step was not saved: {}", found.what);
  if (!found.cause.empty()) stop.cause += ": " + found.cause;
  return stop;
}

// `end`: receives its summary and time, also of a launch that ends early; `fault` the machines that
// caused this.
Result<TrainingSummary> train(const ReadyRun& run,
                              RunLock& lock,
                              const TrainingRequest& request,
                              const Log& log,
                              std::FILE* progress_out,
                              const StepObserver& watch,
                              TrainingEnd& end,
                              PeerFault& fault) {
  const Config& config = run.planned.config;
  const Plan& plan = run.planned.plan;
  const TransportChoice& transport = run.planned.transport;
  auto workers = training_workers(run.planned.cluster, plan, config, request.machines.stage_program,
                                  run.folder.dir());
  MOTLEY_TRY(apply_transport(transport, workers));
  if (workers.size() > 1) log.info(transport.reason);
  for (WorkerSpec& worker : workers) worker.job.stop_after = request.stop_after;
  give_folders(run, workers);
  MOTLEY_TRY(lock.confirm());
  MOTLEY_ASSIGN(auto metrics_file,
                MetricsFile::open(run.folder.metrics_path(), run.steps.first - 1));
  ProgressStyle style = progress_style(progress_out, std::getenv("TERM"), std::getenv("NO_COLOR"));
  style.mute = request.display.quiet;
  if (run.planned.model.unit != "tokens") {
    style.rate_unit = "samples/s";
    style.samples_a_step = config.train.global_batch;
  }
  Progress progress(progress_out, style, run.steps.first - 1, run.steps.last);
  std::optional<WorkerGroup> group;
  bool finishes = false;
  const auto on_rank_step = [&](Rank rank, const StepReport& report) {
    const StepDirective directive = watch(rank, report);
    if (!directive.line.empty()) log_directive(directive, report.step, run, progress, log);
    if (!directive.finish || finishes) return;
    finishes = true;
    group->finish();
  };
  RunFollower follower(
      run, lock, request.resume ? request.resume->failed_at_s : std::nullopt,
      [&group](int worker, const Json& message) { group->send(worker, message); }, on_rank_step,
      std::move(metrics_file), progress, log);
  WorkerGroupOptions options;
  options.start_timeout_s = config.comm.start_timeout_s;
  options.patience_s = config.comm.patience_s;
  options.log_folder = run.folder.log_dir();
  options.before_log = [&] { progress.clear(); };
  if (capabilities_of(plan).keeps_state) {
    options.on_finish = [&](const Error& stop) {
      progress.clear();
      log.info(fmt::format(
          "{}: the current step is finished and saved first; a second signal ends the run at once",
          stop.what));
    };
  }
  options.on_fault = [&](const PeerFault& found) { fault = found; };
  group.emplace(std::move(workers), options, log);
  follower.log_start();
  const auto on_leaving = [&](int worker) {
    const std::string& machine = plan.ranks[static_cast<std::size_t>(worker)].machine;
    if (!end.leaving.insert(machine).second) return;
    progress.clear();
    log.info(fmt::format(
        "{}: its worker was asked to end (SIGTERM): the current step is finished and saved first",
        machine));
    if (finishes) return;
    finishes = true;
    group->finish();
  };
  const auto done = group->run([&](int worker, const Json& event) -> Result<void> {
    if (event.value("event", "") == "leaving") {
      on_leaving(worker);
      return {};
    }
    return follower.on_event(worker, event);
  });
  progress.finish();
  end.summary = follower.summary();
  end.progress_at_s = group->progress_at_s();
  Result<TrainingSummary> ended = done.ok() ? follower.finish() : done.error();
  if (const auto& stop = group->finished_by(); stop && !ended.ok()) {
    ended = ended_by(*stop, ended.error());
  } else if (stop && !ended->is_finished) {
    Error saved = *stop;
    saved.what += fmt::format(", after step {} was saved", ended->last_step);
    ended = std::move(saved);
  }
  // A folder that another launcher has locked is not changed.
  if (!lock.confirm().ok()) return ended;
  const Result<void> reported =
      follower.write_report(ended.ok() ? std::nullopt : std::optional(ended.error()));
  if (ended.ok()) {
    MOTLEY_TRY(reported);
    if (follower.machines_have_stale()) prune_machines(run, request, log);
    return ended;
  }
  if (!reported.ok()) log.warn(fmt::format("no report: {}", reported.error().what));
  if (!capabilities_of(plan).keeps_state) return ended;
  return with_resume_hint(std::move(ended).error(), run.folder.dir(), run.steps.first,
                          request.commands);
}

}  // namespace

std::string done_text(const TrainingSummary& summary, bool computes) {
  std::string text = fmt::format("step {} done", summary.last_step);
  if (summary.last_loss && computes) {
    text += fmt::format(", loss {:.4f}", *summary.last_loss);
  }
  if (summary.evaluation) text += ", " + held_out_text(*summary.evaluation);
  if (summary.best) text += "; best: " + best_text(*summary.best);
  if (!summary.stopped_early.empty()) text += "; stopped early: " + summary.stopped_early;
  return text;
}

TrainingEnd run_training(const ReadyRun& run,
                         RunLock& lock,
                         const TrainingRequest& request,
                         const Log& log,
                         std::FILE* progress_out,
                         const StepObserver& watch) {
  TrainingEnd end;
  PeerFault fault;
  Result<TrainingSummary> trained = train(run, lock, request, log, progress_out, watch, end, fault);
  if (trained.ok()) {
    end.summary = *std::move(trained);
  } else {
    end.failure = {std::move(trained).error(), std::move(fault)};
  }
  return end;
}

}  // namespace motley
