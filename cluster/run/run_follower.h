// RunFollower: handles the events of a run's workers. Records metrics, report, trace and events,
// and displays the progress; events about saves are forwarded to SaveFollower.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json_fwd.h"
#include "base/log.h"
#include "base/result.h"
#include "cluster/diagnose/precision_check.h"
#include "cluster/run/folder_replicators.h"
#include "cluster/run/ready_run.h"
#include "cluster/run/save_follower.h"
#include "cluster/run/training_run.h"
#include "cluster/run_record/arithmetic_check.h"
#include "cluster/run_record/data_time_monitor.h"
#include "cluster/run_record/divergence_detector.h"
#include "cluster/run_record/event_log.h"
#include "cluster/run_record/metrics_collector.h"
#include "cluster/run_record/progress.h"
#include "cluster/run_record/report_collector.h"
#include "cluster/run_record/straggler_detector.h"
#include "cluster/run_record/target_monitor.h"
#include "cluster/run_record/trace_collector.h"
#include "protocol/data_message.h"
#include "record/metrics_file.h"
#include "record/tensorboard_log.h"

namespace motley {

// Receives each step report of each rank. The memory in the report is 0 if the process's memory is
// not the device's.
using StepListener = std::function<void(Rank rank, const StepReport& report)>;

// One owner thread. References passed to it must outlive it.
class RunFollower {
 public:
  // `lock`: of the run's folder. `failed_at_s`: when the previous launch failed; the first step
  // logs the time since then. `send`: sends a message to a worker of the run.
  RunFollower(const ReadyRun& run,
              RunLock& lock,
              std::optional<double> failed_at_s,
              FolderReplicators::Send send,
              StepListener on_rank_step,
              MetricsFile metrics_file,
              Progress& progress,
              const Log& log);
  RunFollower(const RunFollower&) = delete;
  RunFollower& operator=(const RunFollower&) = delete;

  void log_start() const;

  // An error ends the run: kPeer for an invalid event, kData if ranks do not read the same data,
  // kConfig if no device supports train.precision, kDiverged for too many skipped steps, and those
  // of RunLock::confirm().
  [[nodiscard]] Result<void> on_event(int worker, const Json& event);

  // To be called after the last event of a run that completed. If the last save failed, that is the
  // error.
  [[nodiscard]] Result<TrainingSummary> finish();

  // As SaveFollower::machines_have_stale().
  [[nodiscard]] bool machines_have_stale() const { return saves_.machines_have_stale(); }

  // The summary of the steps trained so far.
  [[nodiscard]] const TrainingSummary& summary() const { return summary_; }

  // `early`: why the run ended before its last step.
  [[nodiscard]] Result<void> write_report(const std::optional<Error>& early) const;

 private:
  [[nodiscard]] Result<void> on_step(int worker, const Json& event);
  [[nodiscard]] Result<void> on_precision(int worker, const Json& event);
  [[nodiscard]] Result<void> on_arithmetic(int worker, const Json& event);
  [[nodiscard]] Result<void> on_data(int worker, const Json& event);
  void on_done(int worker, const Json& event);
  void compare_evaluation(const StepMetrics& metrics);
  void append(const StepMetrics& metrics);
  void begin_tensorboard();
  void end_tensorboard();
  void write_trace();
  void log_recovered(std::int64_t step);
  // `rank`: the rank concerned; -1 = none in particular.
  void warn(const std::string& line, int rank = -1) const;
  void record(RunEventKind kind, std::int64_t step, const std::string& line, int rank = -1) const;
  [[nodiscard]] bool reports_memory(int worker) const;

  const ReadyRun& run_;
  RunLock& lock_;
  std::optional<double> failed_at_s_;
  const StepListener on_rank_step_;
  MetricsCollector metrics_;
  MetricsFile metrics_file_;
  std::optional<TensorboardLog> tensorboard_;
  ReportCollector report_;
  StragglerDetector pace_;
  DataTimeMonitor data_time_;
  TraceCollector trace_;
  bool has_new_spans_ = false;  // trace.json lacks some of trace_
  LossMonitor loss_;
  DivergenceDetector divergence_;
  TargetMonitor targets_;
  PrecisionCheck precision_;
  ArithmeticCheck arithmetic_;
  // Of the first rank that reported, with its name.
  std::optional<std::pair<std::string, DataMessage>> data_;
  EvaluationRecord evaluations_;  // the same as on the ranks
  bool metrics_wait_ = false;     // for free disk space
  Progress& progress_;
  const Log& log_;
  EventLog event_log_;
  std::vector<double> step_s_;
  std::int64_t tokens_a_step_ = 0;
  TrainingSummary summary_;
  SaveFollower saves_;
};

}  // namespace motley
