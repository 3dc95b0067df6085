#include "cluster/run/training_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/median.h"
#include "base/system/files.h"
#include "cluster/launch/worker_group.h"
#include "cluster/launch/workers.h"
#include "cluster/run/checkpoint_committer.h"
#include "cluster/run/epoch.h"
#include "cluster/run/metrics.h"
#include "cluster/run/metrics_file.h"
#include "cluster/run/pace_watch.h"
#include "cluster/run/progress.h"
#include "cluster/run/report_collector.h"
#include "cluster/run/trace_collector.h"

namespace motley {
namespace {

// Takes the workers' events of one run.
class RunFollower {
 public:
  RunFollower(const PreparedRun& run, MetricsFile metrics_file, Progress& progress, const Log& log)
      : run_(run),
        metrics_(run.plan.rank_count(), run.plan.predicted_step_s, is_virtual(run.plan)),
        metrics_file_(std::move(metrics_file)),
        committer_(
            run.folder.dir(), run.config, run.model, plan_hash(run.plan), run.plan.rank_count()),
        report_(run.plan.rank_count()),
        pace_(rank_names(run.plan)),
        trace_(rank_names(run.plan), trace_spans_max(run.plan.rank_count())),
        progress_(progress),
        log_(log) {
    summary_.predicted_step_s = run.plan.predicted_step_s;
  }

  Result<void> on_event(int worker, const Json& event) {
    MOTLEY_ASSIGN(const std::string kind, json_get<std::string>(event, "event", "a worker"));
    if (kind == "step") return on_step(worker, event);
    if (kind == "shard") return on_shard(worker, event);
    if (kind == "trace") trace_.add(Rank{worker}, event);
    if (kind == "done") on_done(worker, event);
    return {};
  }

  [[nodiscard]] bool has_saved() const { return summary_.checkpoint.has_value(); }

  Result<TrainingSummary> finish() {
    write_trace();
    MOTLEY_ASSIGN(const RunReport report, report_.report(run_.plan, run_.model));
    MOTLEY_TRY(run_.folder.write_report(report));
    // The first step touches all memory for the first time; it is not typical.
    if (step_s_.size() > 1) step_s_.erase(step_s_.begin());
    if (!step_s_.empty()) summary_.median_step_s = median(step_s_);
    if (summary_.median_step_s > 0) {
      summary_.tokens_per_s = static_cast<double>(tokens_a_step_) / summary_.median_step_s;
    }
    return summary_;
  }

 private:
  static std::vector<std::string> rank_names(const Plan& plan) {
    std::vector<std::string> names;
    for (Rank rank{0}; rank.value < plan.rank_count(); ++rank.value) {
      names.push_back(rank_name(plan, rank));
    }
    return names;
  }

  Result<void> on_step(int worker, const Json& event) {
    MOTLEY_ASSIGN(const StepReport report, step_from_json(event, "a worker's step"));
    MOTLEY_ASSIGN(const auto metrics, metrics_.add(Rank{worker}, report));
    report_.add_step(Rank{worker}, report);
    if (const auto change = pace_.add(Rank{worker}, report.step, report.compute_s)) {
      progress_.clear();
      log_.warn(*change);
    }
    if (!metrics.has_value()) return {};
    MOTLEY_TRY(metrics_file_.append(metrics_to_json(*metrics)));
    summary_.last_step = metrics->step;
    summary_.last_loss = metrics->loss;
    if (metrics->eval_loss) summary_.last_eval_loss = metrics->eval_loss;
    step_s_.push_back(metrics->step_s);
    tokens_a_step_ = metrics->tokens;
    progress_.show(*metrics, now_s());
    return {};
  }

  Result<void> on_shard(int worker, const Json& event) {
    MOTLEY_ASSIGN(const auto folder, committer_.add(worker, event));
    if (!folder.has_value()) return {};
    summary_.checkpoint = *folder;
    progress_.clear();
    log_.info(fmt::format("saved {}", folder->string()));
    return {};
  }

  // The training is done and saved: whatever is wrong with the trace is said, and ends nothing.
  void write_trace() const {
    for (const std::string& note : trace_.notes()) log_.warn("the trace is not whole: " + note);
    if (trace_.empty()) return;
    const auto written = write_file_atomic(run_.folder.trace_path(), trace_.text());
    if (!written.ok()) {
      log_.warn(fmt::format("no trace: {}: {}", written.error().what, written.error().cause));
    }
  }

  // A worker that does not know its peak leaves it out; the report then says so. Of a virtual
  // device the process holds only a part.
  void on_done(int worker, const Json& event) {
    if (is_virtual(run_.plan)) return;
    const auto peak_bytes = json_get<std::int64_t>(event, "peak_bytes", "a worker");
    if (peak_bytes.ok() && *peak_bytes > 0) report_.add_peak(Rank{worker}, *peak_bytes);
  }

  const PreparedRun& run_;
  MetricsCollector metrics_;
  MetricsFile metrics_file_;
  CheckpointCommitter committer_;
  ReportCollector report_;
  PaceWatch pace_;
  TraceCollector trace_;
  Progress& progress_;
  const Log& log_;
  std::vector<double> step_s_;
  std::int64_t tokens_a_step_ = 0;
  TrainingSummary summary_;
};

// Whatever the remedy says of resuming: there is nothing to resume from.
Error without_checkpoint(Error error) {
  error.remedy += error.remedy.empty() ? "" : "; ";
  error.remedy += "no checkpoint was saved yet: start again in the same folder, without --resume";
  return error;
}

}  // namespace

Result<TrainingSummary> run_training(const PreparedRun& run,
                                     const TrainingRequest& request,
                                     const Log& log,
                                     std::FILE* progress_out) {
  auto workers =
      training_workers(run.cluster, run.plan, run.config, request.stage_program, run.folder.dir());
  MOTLEY_TRY(apply_transport(run.transport, workers));
  if (workers.size() > 1) log.info(run.transport.reason);
  MOTLEY_ASSIGN(const std::uint32_t epoch, begin_epoch(run.folder.dir()));
  for (WorkerSpec& worker : workers) {
    worker.job.epoch = epoch;
    worker.job.stop_after = request.stop_after;
    if (run.resume_from) {
      worker.job.resume_from = std::filesystem::absolute(run.resume_from->folder).string();
    }
  }
  MOTLEY_ASSIGN(auto metrics_file,
                MetricsFile::open(run.folder.metrics_path(), run.first_step - 1));
  const std::int64_t last = request.stop_after > 0
                                ? std::min(request.stop_after, run.config.train.steps)
                                : run.config.train.steps;
  Progress progress(progress_out,
                    progress_style(progress_out, std::getenv("TERM"), std::getenv("NO_COLOR")),
                    run.first_step - 1, last);
  RunFollower follower(run, std::move(metrics_file), progress, log);
  WorkerGroupOptions options;
  options.start_timeout_s = run.config.comm.start_timeout_s;
  options.log_folder = run.folder.log_dir();
  options.before_log = [&] { progress.clear(); };
  WorkerGroup group(std::move(workers), options, log);
  const auto done =
      group.run([&](int worker, const Json& event) { return follower.on_event(worker, event); });
  progress.finish();
  if (!done.ok()) {
    const bool has_checkpoint = run.resume_from.has_value() || follower.has_saved();
    return has_checkpoint || is_virtual(run.plan) ? done.error() : without_checkpoint(done.error());
  }
  return follower.finish();
}

}  // namespace motley
