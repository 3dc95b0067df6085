#include "cluster/run/run_follower.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/clock.h"
#include "base/json.h"
#include "base/median.h"
#include "base/system/files.h"
#include "cluster/launch/workers.h"
#include "cluster/run/data_fingerprint.h"
#include "plan/rank_names.h"
#include "run_config/evaluation_rules.h"

namespace motley {
namespace {

constexpr std::size_t kRemarkBytesMax = 1000;  // a worker's remarks on its data

bool is_same_data(const DataMessage& a, const DataMessage& b) {
  return a.bytes == b.bytes && a.hash == b.hash;
}

// A rank that computes nothing has the dtype of the plan.
std::string compute_dtype_of(const Plan& plan, const PrecisionCheck& precision, std::size_t rank) {
  const RankPlan& place = plan.ranks[rank];
  return capabilities_of(place.device).computes ? precision.compute_dtype_of(rank)
                                                : place.compute_dtype;
}

LossMeaning loss_meaning(const PlannedRun& planned) {
  const TrainConfig& train = planned.config.train;
  return {.is_computed = capabilities_of(planned.plan).computes,
          .has_perplexity = planned.model.unit == "tokens" && train.label_smoothing == 0 &&
                            train.class_weights.empty()};
}

}  // namespace

RunFollower::RunFollower(const ReadyRun& run,
                         RunLock& lock,
                         std::optional<double> failed_at_s,
                         FolderReplicators::Send send,
                         StepListener on_rank_step,
                         MetricsFile metrics_file,
                         Progress& progress,
                         const Log& log)
    : run_(run),
      lock_(lock),
      failed_at_s_(failed_at_s),
      on_rank_step_(std::move(on_rank_step)),
      metrics_(run.planned.plan.rank_count(),
               run.planned.plan.predicted_step_s,
               loss_meaning(run.planned)),
      metrics_file_(std::move(metrics_file)),
      report_(run.planned.plan.rank_count()),
      pace_(rank_names(run.planned.plan)),
      data_time_(rank_names(run.planned.plan)),
      trace_(rank_names(run.planned.plan), trace_spans_max(run.planned.plan.rank_count())),
      divergence_(run.planned.config.train.max_skipped),
      precision_(
          run.planned.config.train.precision, rank_names(run.planned.plan), /*refuses=*/true),
      arithmetic_(run.planned.plan),
      progress_(progress),
      log_(log),
      event_log_(run.folder.events_path(), log, [&progress] { progress.clear(); }),
      saves_(run,
             std::move(send),
             [this](RunEventKind kind,
                    std::optional<std::int64_t> step,
                    const std::string& line,
                    int rank) { record(kind, step.value_or(summary_.last_step), line, rank); }) {
  if (run_.resumed && run_.resumed->evaluations) evaluations_ = *run_.resumed->evaluations;
  summary_.best = evaluations_.best;
  begin_tensorboard();
  summary_.predicted_step_s = run.planned.plan.predicted_step_s;
}

void RunFollower::log_start() const {
  const bool is_resumed = run_.steps.first > 1;
  record(is_resumed ? RunEventKind::kResumed : RunEventKind::kStarted, run_.steps.first - 1,
         fmt::format("{} step {}, to step {}, on {}: {:.3f} s a step predicted",
                     is_resumed ? "continues with" : "starts with", run_.steps.first,
                     run_.steps.last, fmt::join(machines_in_use(run_.planned.plan), ", "),
                     run_.planned.plan.predicted_step_s));
}

Result<void> RunFollower::on_event(int worker, const Json& event) {
  MOTLEY_TRY(lock_.confirm());
  const Result<std::string> read = json_get<std::string>(event, "event", "a worker");
  if (!read.ok()) return read.error();
  const std::string& kind = *read;
  if (kind == "step") return on_step(worker, event);
  if (kind == "data") return on_data(worker, event);
  if (kind == "precision") return on_precision(worker, event);
  if (kind == "arithmetic") return on_arithmetic(worker, event);
  if (kind == "trace") {
    trace_.add(Rank{worker}, event);
    has_new_spans_ = true;
  }
  if (kind == "done") on_done(worker, event);
  MOTLEY_TRY(saves_.on_event(worker, kind, event));
  summary_.checkpoint = saves_.checkpoint();
  return {};
}

Result<TrainingSummary> RunFollower::finish() {
  MOTLEY_TRY(lock_.confirm());
  for (const std::string& note : trace_.notes()) log_.warn("the trace is incomplete: " + note);
  // Also if it could not be written after the first steps, for example because the disk was full.
  if (has_new_spans_ || !summary_.has_trace) write_trace();
  end_tensorboard();
  if (const auto empty = targets_.summary()) warn(*empty);
  if (const auto unsaved = saves_.unsaved()) return *unsaved;
  MOTLEY_TRY(metrics_file_.finish());
  for (std::size_t r = 0; r < run_.planned.plan.ranks.size(); ++r) {
    summary_.compute_dtype.push_back(compute_dtype_of(run_.planned.plan, precision_, r));
  }
  summary_.is_finished =
      summary_.last_step >= run_.planned.config.train.steps || !summary_.stopped_early.empty();
  if (run_.planned.config.checkpoint.keep_best) {
    const auto best = best_checkpoint(list_checkpoints(run_.folder.dir()));
    if (best) summary_.best_checkpoint = best->info.folder;
  }
  // The first step touches all memory for the first time; it is not typical.
  if (step_s_.size() > 1) step_s_.erase(step_s_.begin());
  if (!step_s_.empty()) summary_.median_step_s = median(step_s_);
  if (summary_.median_step_s > 0) {
    const std::int64_t units = run_.planned.model.unit == "tokens"
                                   ? tokens_a_step_
                                   : run_.planned.config.train.global_batch;
    summary_.units_per_s = static_cast<double>(units) / summary_.median_step_s;
  }
  return summary_;
}

Result<void> RunFollower::write_report(const std::optional<Error>& early) const {
  MOTLEY_ASSIGN(RunReport report, report_.report(run_.planned.plan, run_.planned.model));
  for (std::size_t r = 0; r < report.ranks.size(); ++r) {
    report.ranks[r].compute_dtype = compute_dtype_of(run_.planned.plan, precision_, r);
  }
  if (early) report.end = RunEnd::by(*early, report.end.last_step);
  report.steps_without_targets = targets_.steps_without();
  if (data_) report.class_names = data_->second.class_names;
  report.evaluation = summary_.evaluation;
  report.best = summary_.best;
  report.end.stopped_early = summary_.stopped_early;
  return run_.folder.write_report(report);
}

Result<void> RunFollower::on_step(int worker, const Json& event) {
  MOTLEY_ASSIGN(StepReport report, step_from_json(event, "a worker's step"));
  if (!reports_memory(worker)) report.memory_bytes = 0;
  MOTLEY_ASSIGN(auto metrics, metrics_.add(Rank{worker}, report));
  report_.add_step(Rank{worker}, report);
  on_rank_step_(Rank{worker}, report);
  if (const auto slow = pace_.add(Rank{worker}, report.step, report.times.compute_s, now_s())) {
    warn(*slow, worker);
  }
  if (const auto slow = data_time_.add(Rank{worker}, report.times.data_s, report.step_s)) {
    warn(*slow, worker);
  }
  if (!metrics.has_value()) return {};
  metrics->time_s = unix_time_s();
  append(*metrics);
  if (failed_at_s_) log_recovered(metrics->step);
  summary_.last_step = metrics->step;
  if (!metrics->without_targets) summary_.last_loss = metrics->outcome.loss;
  if (const auto result = held_out_result(*metrics)) summary_.evaluation = result;
  compare_evaluation(*metrics);
  step_s_.push_back(metrics->step_s);
  if (!metrics->without_targets) tokens_a_step_ = metrics->outcome.tokens;
  progress_.show(*metrics, now_s());
  if (const auto jump = loss_.add(*metrics)) warn(*jump);
  MOTLEY_ASSIGN(const auto skipped, divergence_.add(*metrics));
  if (skipped) warn(*skipped);
  if (const auto empty = targets_.add(*metrics)) warn(*empty);
  // Each rank sends all of its spans between two steps.
  if (has_new_spans_ && trace_.has_all_ranks()) write_trace();
  return {};
}

// As the ranks do (worker/train/training_loop.h), from the same values.
void RunFollower::compare_evaluation(const StepMetrics& metrics) {
  const TrainConfig& train = run_.planned.config.train;
  const bool compares = compares_evaluations(run_.planned.config);
  if (!compares || !(metrics.eval_loss || metrics.eval_without_targets)) return;
  const bool counts = metrics.step % train.eval_every == 0;
  evaluations_ = with_evaluation(std::move(evaluations_), metrics.step,
                                 metrics.eval_loss.value_or(std::nan("")), counts);
  summary_.best = evaluations_.best;
  if (counts && stops_early(evaluations_, train.early_stopping)) {
    summary_.stopped_early = early_stop_text(evaluations_);
  }
}

// Logs, after the first step, the time lost by the failure before this launch.
void RunFollower::log_recovered(std::int64_t step) {
  record(RunEventKind::kRestarted, step,
         fmt::format("recovered: step {} completed {:.1f} s after the failure", step,
                     now_s() - *failed_at_s_));
  failed_at_s_.reset();
}

// Reported here even if profiling reported it already: the plan now uses these devices.
Result<void> RunFollower::on_precision(int worker, const Json& event) {
  MOTLEY_ASSIGN(const auto line, precision_.add(worker, event));
  if (line) warn(*line, worker);
  return {};
}

Result<void> RunFollower::on_arithmetic(int worker, const Json& event) {
  MOTLEY_ASSIGN(const std::string text, json_get<std::string>(event, "text", "a worker"));
  if (const auto line = arithmetic_.add(Rank{worker}, text)) warn(*line);
  return {};
}

// `rank`: the rank concerned; -1 = none in particular.
void RunFollower::warn(const std::string& line, int rank) const {
  record(RunEventKind::kWarning, summary_.last_step, line, rank);
}

void RunFollower::record(RunEventKind kind,
                         std::int64_t step,
                         const std::string& line,
                         int rank) const {
  event_log_.emit(kind, step, line,
                  rank < 0 ? "" : run_.planned.plan.ranks[static_cast<std::size_t>(rank)].machine);
}

// A full disk does not end the run: unwritten lines are written once there is space.
void RunFollower::append(const StepMetrics& metrics) {
  const Result<void> appended = metrics_file_.append(metrics_to_json(metrics));
  if (!appended && !metrics_wait_) {
    record(RunEventKind::kMetricsFailed, summary_.last_step,
           fmt::format("{}: {}; its lines are buffered in memory, and the run continues",
                       appended.error().what, appended.error().cause),
           -1);
  }
  metrics_wait_ = !appended.ok();
  if (!tensorboard_) return;
  if (const auto waits = tensorboard_->append(metrics, metrics.time_s)) warn(*waits);
}

// A failure of the TensorBoard log does not end the run.
void RunFollower::begin_tensorboard() {
  if (!run_.planned.config.run.tensorboard) return;
  auto begun = TensorboardLog::open(run_.folder.tensorboard_dir(), run_.steps.first,
                                    rank_names(run_.planned.plan), unix_time_s());
  if (begun.ok()) {
    tensorboard_ = *std::move(begun);
  } else {
    warn(fmt::format("no TensorBoard output: {}: {}", begun.error().what, begun.error().cause));
  }
}

void RunFollower::end_tensorboard() {
  if (!tensorboard_) return;
  if (const auto missing = tensorboard_->finish()) warn(*missing);
}

// The ranks that read the data report its identity before the first step. The remarks of other
// ranks may name other paths.
Result<void> RunFollower::on_data(int worker, const Json& event) {
  MOTLEY_ASSIGN(const DataMessage message, read_data_event(event));
  const std::string name = rank_name(run_.planned.plan, Rank{worker});
  if (data_ && !is_same_data(data_->second, message)) {
    return Error{ErrorCode::kData,
                 fmt::format("{} and {} do not read the same data", data_->first, name),
                 fmt::format("{} bytes of data on one, {} on the other, or different content",
                             data_->second.bytes, message.bytes),
                 run_.planned.config.data.holdout_path.empty()
                     ? "copy the file of data.path from one of the machines to the other"
                     : "copy the files of data.path and data.holdout_path from one of the machines "
                       "to the other"};
  }
  if (data_) return {};
  data_ = {name, message};
  for (const std::string& remark : message.remarks) warn(excerpt(remark, kRemarkBytesMax));
  const DataIdentity found{message.bytes, message.hash};
  if (run_.counted_data && *run_.counted_data != found) {
    return Error{ErrorCode::kData,
                 fmt::format("{} does not read the data from which the steps of train.epochs were "
                             "counted",
                             name),
                 fmt::format("{} bytes of data there, {} counted, or different content",
                             found.bytes, run_.counted_data->bytes),
                 "copy the file of data.path from one of the machines to the other"};
  }
  saves_.set_data(data_fingerprint(found, run_.planned.config.data));
  if (run_.resumed && run_.resumed->data) {
    const Result<void> same = check_same_data(*run_.resumed->data, found, run_.planned.config.data);
    if (!same) return with_context(same.error(), name);
  }
  // Of refused data they would replace those of the run.
  if (message.class_names.empty()) return {};
  return run_.folder.write_class_names(message.class_names);
}

// Without it a run is as good: a failure is a warning.
void RunFollower::write_trace() {
  has_new_spans_ = false;
  if (trace_.empty()) return;
  const auto written = write_file_atomic(run_.folder.trace_path(), trace_.text());
  if (!written.ok()) {
    progress_.clear();
    log_.warn(fmt::format("no trace: {}: {}", written.error().what, written.error().cause));
  }
  summary_.has_trace = written.ok();
}

// A worker that does not know its peak omits it, and the report shows it as unknown.
void RunFollower::on_done(int worker, const Json& event) {
  const auto peak_bytes = json_get<std::int64_t>(event, "peak_bytes", "a worker");
  if (peak_bytes.ok() && *peak_bytes > 0 && reports_memory(worker))
    report_.add_peak(Rank{worker}, *peak_bytes);
}

// A process reports its host memory: of a device that holds no state only a part, and not the
// memory of a device with its own.
bool RunFollower::reports_memory(int worker) const {
  const DeviceCapabilities capabilities =
      capabilities_of(run_.planned.plan.ranks[static_cast<std::size_t>(worker)].device);
  return capabilities.keeps_state && !capabilities.has_own_memory;
}

}  // namespace motley
