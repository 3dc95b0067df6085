#include "cluster/run/training_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/median.h"
#include "base/system/files.h"
#include "cluster/examine/precision_check.h"
#include "cluster/follow/divergence_watch.h"
#include "cluster/follow/metrics.h"
#include "cluster/follow/metrics_file.h"
#include "cluster/follow/pace_watch.h"
#include "cluster/follow/progress.h"
#include "cluster/follow/report_collector.h"
#include "cluster/follow/run_teller.h"
#include "cluster/follow/trace_collector.h"
#include "cluster/launch/worker_group.h"
#include "cluster/launch/workers.h"
#include "cluster/run/checkpoint_committer.h"
#include "cluster/run/folder_keepers.h"
#include "cluster/run/rank_folders.h"
#include "cluster/run/resume.h"
#include "cluster/run/way_on.h"
#include "cluster/tensorboard/tensorboard_log.h"
#include "protocol/data_message.h"

namespace motley {
namespace {

std::optional<CheckpointTexts> resumed_texts(const PreparedRun& run) {
  return run.restore_point ? std::optional(run.restore_point->texts) : std::nullopt;
}

// Takes the workers' events of one run.
class RunFollower {
 public:
  // `send`: a message to a worker of the run.
  RunFollower(const PreparedRun& run,
              std::optional<double> failed_at_s,
              FolderKeepers::Send send,
              MetricsFile metrics_file,
              Progress& progress,
              const Log& log)
      : run_(run),
        failed_at_s_(failed_at_s),
        metrics_(run.plan.rank_count(), run.plan.predicted_step_s, is_virtual(run.plan)),
        metrics_file_(std::move(metrics_file)),
        committer_(run.folder.dir(),
                   run.lock->launch(),
                   run.config,
                   run.model,
                   run.plan,
                   ranks_elsewhere(run.plan, run.stores)),
        keepers_(run, resumed_texts(run), std::move(send)),
        report_(run.plan.rank_count()),
        pace_(rank_names(run.plan)),
        trace_(rank_names(run.plan), trace_spans_max(run.plan.rank_count())),
        divergence_(run.config.train.max_skipped),
        precision_(run.config.train.precision, rank_names(run.plan), /*refuses=*/true),
        progress_(progress),
        log_(log),
        teller_(run.folder.events_path(), log, [&progress] { progress.clear(); }) {
    begin_tensorboard();
    summary_.predicted_step_s = run.plan.predicted_step_s;
    committer_.keep_always(keepers_.safe_steps());
  }

  void tell_start(std::int64_t last_step) const {
    const bool is_resumed = run_.first_step > 1;
    tell(is_resumed ? RunEventKind::kResumed : RunEventKind::kStarted, run_.first_step - 1,
         fmt::format("{} step {}, to step {}, on {}: {:.3f} s a step predicted",
                     is_resumed ? "goes on with" : "begins with", run_.first_step, last_step,
                     fmt::join(machines_in_use(run_.plan), ", "), run_.plan.predicted_step_s));
  }

  Result<void> on_event(int worker, const Json& event) {
    MOTLEY_TRY(run_.lock->confirm());
    const Result<std::string> read = json_get<std::string>(event, "event", "a worker");
    if (!read.ok()) return read.error();
    const std::string& kind = *read;
    if (kind == "step") return on_step(worker, event);
    if (kind == "data") return on_data(worker, event);
    if (kind == "precision") return on_precision(worker, event);
    if (kind == "shard") return end_save(committer_.add_shard(worker, event));
    if (kind == "shard_failed") return end_save(committer_.add_failure(worker, event));
    if (kind == "keeper") keepers_.add(worker);
    if (kind == "keep_failed") return on_keep_failed(worker, event);
    if (kind == "copied") return on_copied(worker, event);
    if (kind == "copy_failed") return on_copy_failed(worker, event);
    if (kind == "trace") trace_.add(Rank{worker}, event);
    if (kind == "done") on_done(worker, event);
    return {};
  }

  Result<TrainingSummary> finish() {
    MOTLEY_TRY(run_.lock->confirm());
    write_trace();
    end_tensorboard();
    if (unsaved_) return unsaved_error();
    MOTLEY_TRY(metrics_file_.finish());
    for (std::size_t r = 0; r < run_.plan.ranks.size(); ++r) {
      summary_.numbers.push_back(precision_.numbers_of(r));
    }
    summary_.is_finished = summary_.last_step >= run_.config.train.steps;
    // The first step touches all memory for the first time; it is not typical.
    if (step_s_.size() > 1) step_s_.erase(step_s_.begin());
    if (!step_s_.empty()) summary_.median_step_s = median(step_s_);
    if (summary_.median_step_s > 0) {
      const std::int64_t units =
          run_.model.unit == "tokens" ? tokens_a_step_ : run_.config.train.global_batch;
      summary_.units_per_s = static_cast<double>(units) / summary_.median_step_s;
    }
    return summary_;
  }

  [[nodiscard]] const TrainingSummary& summary() const { return summary_; }

  Result<void> write_report(const std::optional<EarlyEnd>& ended) const {
    MOTLEY_ASSIGN(RunReport report, report_.report(run_.plan, run_.model));
    for (std::size_t r = 0; r < report.ranks.size(); ++r) {
      report.ranks[r].numbers = precision_.numbers_of(r);
    }
    report.ended = ended;
    return run_.folder.write_report(report);
  }

 private:
  Result<void> on_step(int worker, const Json& event) {
    MOTLEY_ASSIGN(StepReport report, step_from_json(event, "a worker's step"));
    if (!tells_memory(worker)) report.memory_bytes = 0;
    MOTLEY_ASSIGN(auto metrics, metrics_.add(Rank{worker}, report));
    report_.add_step(Rank{worker}, report);
    if (const auto slow = pace_.add(Rank{worker}, report.step, report.compute_s, now_s())) {
      warn(*slow, worker);
    }
    if (!metrics.has_value()) return {};
    metrics->time_s = unix_time_s();
    append(*metrics);
    if (failed_at_s_) tell_recovered(metrics->step);
    summary_.last_step = metrics->step;
    summary_.last_loss = metrics->loss;
    if (metrics->eval_loss) {
      summary_.last_eval_loss = metrics->eval_loss;
      summary_.last_eval_accuracy = metrics->eval_accuracy;
    }
    step_s_.push_back(metrics->step_s);
    tokens_a_step_ = metrics->tokens;
    progress_.show(*metrics, now_s());
    if (const auto jump = loss_.add(*metrics)) warn(*jump);
    MOTLEY_ASSIGN(const auto skipped, divergence_.add(*metrics));
    if (skipped) warn(*skipped);
    return {};
  }

  // What the setback before this launch has cost is known with its first step.
  void tell_recovered(std::int64_t step) {
    tell(RunEventKind::kRestarted, step,
         fmt::format("going on: step {} was done {:.1f} s after the failure", step,
                     now_s() - *failed_at_s_));
    failed_at_s_.reset();
  }

  // Also where it was said when the devices were measured: now the plan has taken them.
  Result<void> on_precision(int worker, const Json& event) {
    MOTLEY_ASSIGN(const auto line, precision_.add(worker, event));
    if (line) warn(*line, worker);
    return {};
  }

  // rank: that it is about; -1 = none in particular.
  void warn(const std::string& line, int rank = -1) const {
    tell(RunEventKind::kWarning, summary_.last_step, line, rank);
  }

  void tell(RunEventKind kind, std::int64_t step, const std::string& line, int rank = -1) const {
    teller_.tell(kind, step, line,
                 rank < 0 ? "" : run_.plan.ranks[static_cast<std::size_t>(rank)].machine);
  }

  // A full disk does not end the run: what cannot be written now is written when there is room.
  void append(const StepMetrics& metrics) {
    const Result<void> appended = metrics_file_.append(metrics_to_json(metrics));
    if (!appended && !metrics_wait_) {
      warn(fmt::format("{}: {}; what belongs there waits in memory, and the run goes on",
                       appended.error().what, appended.error().cause));
    }
    metrics_wait_ = !appended.ok();
    if (!tensorboard_) return;
    if (const auto waits = tensorboard_->append(metrics, metrics.time_s)) warn(*waits);
  }

  // Nothing that stands in the way of it ends the run.
  void begin_tensorboard() {
    if (!run_.config.run.tensorboard) return;
    auto begun = TensorboardLog::open(run_.folder.tensorboard_dir(), run_.first_step,
                                      rank_names(run_.plan), unix_time_s());
    if (begun.ok()) {
      tensorboard_ = *std::move(begun);
    } else {
      warn(fmt::format("nothing for TensorBoard: {}: {}", begun.error().what, begun.error().cause));
    }
  }

  void end_tensorboard() {
    if (!tensorboard_) return;
    if (const auto missing = tensorboard_->finish()) warn(*missing);
  }

  // The ranks with the data tell which it is before the first step.
  Result<void> on_data(int worker, const Json& event) {
    MOTLEY_ASSIGN(const DataMessage message, read_data_event(event));
    const std::string name = rank_name(run_.plan, Rank{worker});
    if (data_ && data_->second != message) {
      return Error{ErrorCode::kData,
                   fmt::format("{} and {} do not read the same data", data_->first, name),
                   fmt::format("{} bytes of data here, {} there, or others among them",
                               data_->second.bytes, message.bytes),
                   "copy the file of data.path from one of the machines to the other"};
    }
    if (data_) return {};
    data_ = {name, message};
    const DataIdentity found{message.bytes, message.hash};
    committer_.set_data(data_mark(found, run_.config.data));
    if (!run_.saved_data) return {};
    const Result<void> same = check_same_data(*run_.saved_data, found, run_.config.data);
    if (!same) return with_context(same.error(), name);
    return {};
  }

  Result<void> end_save(Result<std::optional<SaveOutcome>> ended) {
    MOTLEY_ASSIGN(const std::optional<SaveOutcome> outcome, std::move(ended));
    if (!outcome) return {};
    unsaved_ = outcome->failure;
    if (!outcome->folder) keepers_.tell_dropped(outcome->step);
    if (outcome->folder) {
      MOTLEY_TRY(keepers_.tell_committed(*outcome->folder));
      committer_.keep_always(keepers_.safe_steps());
      summary_.checkpoint = *outcome->folder;
      tell(RunEventKind::kCheckpoint, outcome->step,
           fmt::format("saved {}", outcome->folder->string()));
    } else {
      const std::string where =
          outcome->failed_rank ? rank_name(run_.plan, Rank{*outcome->failed_rank}) + ": " : "";
      const std::string way_out =
          unsaved_->remedy.empty() ? "" : "; for the next save, " + unsaved_->remedy;
      tell(RunEventKind::kCheckpointFailed, outcome->step,
           fmt::format("step {} was not saved: {}{}: {}. {}, and the run goes on{}", outcome->step,
                       where, unsaved_->what, unsaved_->cause, what_stands(), way_out),
           outcome->failed_rank.value_or(-1));
    }
    if (outcome->stale) {
      warn(fmt::format("an old checkpoint stays: {}: {}", outcome->stale->what,
                       outcome->stale->cause));
    }
    return {};
  }

  // The files lie there all the same, under the names of a save under way, and are found.
  Result<void> on_keep_failed(int worker, const Json& event) {
    const Error error = error_from_json(event);
    warn(fmt::format("{}: its part of a checkpoint could not be put in its place: {}: {}",
                     rank_name(run_.plan, Rank{worker}), error.what, error.cause),
         worker);
    return {};
  }

  Result<void> on_copied(int worker, const Json& event) {
    MOTLEY_TRY(keepers_.add_copied(worker, event));
    committer_.keep_always(keepers_.safe_steps());
    return {};
  }

  // A later save tries again. A checkpoint that was removed meanwhile needs no copies.
  Result<void> on_copy_failed(int worker, const Json& event) {
    MOTLEY_TRY(keepers_.add_failed(event));
    committer_.keep_always(keepers_.safe_steps());
    MOTLEY_ASSIGN(const std::int64_t step, json_get<std::int64_t>(event, "step", "a keeper"));
    const auto stand = list_checkpoints(run_.folder.dir());
    if (std::ranges::count(stand, step, &CheckpointInfo::step) == 0) return {};
    const Error error = error_from_json(event);
    warn(fmt::format("{}: step {} has no second copy of its part: {}: {}",
                     rank_name(run_.plan, Rank{worker}), step, error.what, error.cause),
         worker);
    return {};
  }

  // The training is done and saved: whatever is wrong with the trace is said, and ends nothing.
  void write_trace() {
    for (const std::string& note : trace_.notes()) log_.warn("the trace is not whole: " + note);
    if (trace_.empty()) return;
    const auto written = write_file_atomic(run_.folder.trace_path(), trace_.text());
    if (!written.ok()) {
      log_.warn(fmt::format("no trace: {}: {}", written.error().what, written.error().cause));
    }
    summary_.has_trace = written.ok();
  }

  std::string what_stands() const {
    const auto checkpoints = list_checkpoints(run_.folder.dir());
    if (checkpoints.empty()) return "No checkpoint stands yet";
    return fmt::format("The checkpoint of step {} stands", checkpoints.back().step);
  }

  // The last save of a run is the one that matters.
  Error unsaved_error() const {
    Error error = *unsaved_;
    error.what = fmt::format("the last step was done and could not be saved: {}", error.what);
    error.cause += ". " + what_stands();
    return error;
  }

  // A worker that does not know its peak leaves it out; the report then says so. Of a virtual
  // device the process holds only a part.
  void on_done(int worker, const Json& event) {
    const auto peak_bytes = json_get<std::int64_t>(event, "peak_bytes", "a worker");
    if (peak_bytes.ok() && *peak_bytes > 0 && tells_memory(worker))
      report_.add_peak(Rank{worker}, *peak_bytes);
  }

  // A process tells its host's memory, which is not what a device of its own has to hold.
  [[nodiscard]] bool tells_memory(int worker) const {
    return !is_virtual(run_.plan) &&
           !has_own_memory(run_.plan.ranks[static_cast<std::size_t>(worker)].device);
  }

  const PreparedRun& run_;
  std::optional<double> failed_at_s_;  // the launch before this one; until that was told
  MetricsCollector metrics_;
  MetricsFile metrics_file_;
  std::optional<TensorboardLog> tensorboard_;
  CheckpointCommitter committer_;
  FolderKeepers keepers_;
  ReportCollector report_;
  PaceWatch pace_;
  TraceCollector trace_;
  LossWatch loss_;
  DivergenceWatch divergence_;
  PrecisionCheck precision_;
  std::optional<std::pair<std::string, DataMessage>> data_;  // of the first rank that told, by name
  std::optional<Error> unsaved_;                             // why the last save was none
  bool metrics_wait_ = false;                                // for room on the disk
  Progress& progress_;
  const Log& log_;
  RunTeller teller_;
  std::vector<double> step_s_;
  std::int64_t tokens_a_step_ = 0;
  TrainingSummary summary_;
};

// Where each rank writes, and what it goes on from.
void give_folders(const PreparedRun& run, std::vector<WorkerSpec>& workers) {
  const auto keepers =
      plan_keepers(run.plan, run.stores, run.cluster, run.config.checkpoint.copies);
  for (WorkerSpec& worker : workers) {
    const auto keeper = keepers.find(worker.job.rank.value);
    if (keeper != keepers.end()) worker.job.keeper = keeper->second;
    worker.job.launch = run.lock->launch();
    worker.job.store = run.stores.of(worker.machine.name);
    worker.job.run_id = run.id;
    if (const auto dir = run.stores.dirs.find(worker.machine.name); dir != run.stores.dirs.end()) {
      worker.job.run_dir = dir->second.string();
    }
    if (!run.resume_from) continue;
    const auto view = run.resume_folders.find(worker.job.store);
    // As the machine sees it: a shared folder may have another path there.
    const std::filesystem::path folder =
        view != run.resume_folders.end()
            ? view->second
            : checkpoint_folder(worker.job.run_dir, run.resume_from->step).parent_path() /
                  run.resume_from->folder.filename();
    worker.job.resume_from = folder.string();
  }
}

// `so_far`: what was trained, where it ends early.
Result<TrainingSummary> train(const PreparedRun& run,
                              const TrainingRequest& request,
                              const Log& log,
                              std::FILE* progress_out,
                              TrainingSummary& so_far) {
  auto workers =
      training_workers(run.cluster, run.plan, run.config, request.stage_program, run.folder.dir());
  MOTLEY_TRY(apply_transport(run.transport, workers));
  if (workers.size() > 1) log.info(run.transport.reason);
  for (WorkerSpec& worker : workers) worker.job.stop_after = request.stop_after;
  give_folders(run, workers);
  MOTLEY_TRY(run.lock->confirm());
  MOTLEY_ASSIGN(auto metrics_file,
                MetricsFile::open(run.folder.metrics_path(), run.first_step - 1));
  ProgressStyle style = progress_style(progress_out, std::getenv("TERM"), std::getenv("NO_COLOR"));
  style.mute = request.quiet;
  if (run.model.unit != "tokens") {
    style.rate_unit = "samples/s";
    style.samples_a_step = run.config.train.global_batch;
  }
  Progress progress(progress_out, style, run.first_step - 1, last_step_of(run, request));
  std::optional<WorkerGroup> group;
  RunFollower follower(
      run, request.failed_at_s,
      [&group](int worker, const Json& message) { group->send(worker, message); },
      std::move(metrics_file), progress, log);
  WorkerGroupOptions options;
  options.start_timeout_s = run.config.comm.start_timeout_s;
  options.log_folder = run.folder.log_dir();
  options.before_log = [&] { progress.clear(); };
  // A rehearsal has nothing to save.
  if (!is_virtual(run.plan)) {
    options.on_finish = [&](const Error& stop) {
      progress.clear();
      log.info(fmt::format(
          "{}: what is under way is finished and saved first; a second signal ends at once",
          stop.what));
    };
  }
  group.emplace(std::move(workers), options, log);
  follower.tell_start(last_step_of(run, request));
  const auto done =
      group->run([&](int worker, const Json& event) { return follower.on_event(worker, event); });
  progress.finish();
  so_far = follower.summary();
  Result<TrainingSummary> ended = done.ok() ? follower.finish() : done.error();
  if (ended.ok() && group->finished_by() && !ended->is_finished) {
    Error stop = *group->finished_by();
    stop.what += fmt::format(", after step {} was saved", ended->last_step);
    ended = std::move(stop);
  }
  // A folder that another launcher has taken is its.
  if (!run.lock->confirm().ok()) return ended;
  std::optional<EarlyEnd> early;
  if (!ended.ok())
    early = {static_cast<int>(ended.error().code), excerpt(ended.error().what, kEarlyEndBytesMax)};
  const Result<void> reported = follower.write_report(early);
  if (ended.ok()) {
    MOTLEY_TRY(reported);
    return ended;
  }
  if (!reported.ok()) log.warn(fmt::format("no report: {}", reported.error().what));
  // A rehearsal saves nothing and cannot be resumed.
  if (is_virtual(run.plan)) return ended;
  return with_way_on(std::move(ended).error(), run.folder.dir(), run.first_step, request.commands);
}

}  // namespace

std::string done_text(const TrainingSummary& summary, bool is_virtual) {
  std::string text = fmt::format("step {} done", summary.last_step);
  if (!is_virtual) text += fmt::format(", loss {:.4f}", summary.last_loss);
  if (summary.last_eval_loss)
    text += fmt::format(", held-out loss {:.4f}", *summary.last_eval_loss);
  if (summary.last_eval_accuracy) {
    text += fmt::format(", {:.2f} % of the held-out right", *summary.last_eval_accuracy * 100);
  }
  return text;
}

TrainingEnd run_training(const PreparedRun& run,
                         const TrainingRequest& request,
                         const Log& log,
                         std::FILE* progress_out) {
  TrainingEnd end;
  Result<TrainingSummary> trained = train(run, request, log, progress_out, end.summary);
  if (trained.ok()) {
    end.summary = *std::move(trained);
  } else {
    end.early = std::move(trained).error();
  }
  return end;
}

}  // namespace motley
