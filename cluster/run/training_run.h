// Runs a training from its first process to its last: workers, metrics, checkpoints, trace.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/log.h"
#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "cluster/run/ready_run.h"
#include "cluster/run/training_request.h"
#include "protocol/protocol.h"
#include "record/held_out_result.h"

namespace motley {

struct TrainingSummary {
  std::int64_t last_step = 0;
  std::optional<double> last_loss;          // of the last step with targets
  std::optional<HeldOutResult> evaluation;  // the last one
  double median_step_s = 0;                 // of this session's steps except the first
  double units_per_s = 0;                   // at the median step
  double predicted_step_s = 0;
  std::vector<std::string> compute_dtype;           // by rank: the dtype of its matrix products
  std::optional<std::filesystem::path> checkpoint;  // the newest committed in this session
  // The best evaluation of the whole run, and its checkpoint if there is one; only of runs that
  // compare evaluations (checkpoint.keep_best, train.early_stopping).
  std::optional<BestEvaluation> best;
  std::optional<std::filesystem::path> best_checkpoint;
  std::string stopped_early;  // why, if train.early_stopping ended the run
  bool has_trace = false;     // one was written in this session
  bool is_finished = false;   // the run's last step is done, or it stopped early
};

// How a launch ended.
struct TrainingEnd {
  TrainingSummary summary;             // of the trained steps, in any case
  std::optional<PeerFailure> failure;  // why it ended before its last step
  // Machines that asked to leave: a worker there received SIGTERM. The launch ended for that after
  // a saved step, unless it failed.
  std::set<std::string> leaving;
  double progress_at_s = 0;  // as now_s(): the time of the last progress
};

// The request of a step watcher to the launch.
struct StepDirective {
  std::string line;     // a message for the user; "" = none
  bool finish = false;  // save the step under way and end the launch as after its last step
};

// Called with each step report of each rank; memory is 0 if the process's memory is not the
// device's.
using StepObserver = std::function<StepDirective(Rank rank, const StepReport& report)>;

// "step 40 done, loss 2.3140, held-out loss 2.4000, 45.10 % of the held-out right", on one line.
// Without the loss unless the devices compute one.
[[nodiscard]] std::string done_text(const TrainingSummary& summary, bool computes);

// Starts a worker for each rank of the plan and handles their events until the end. Every step's
// metrics are appended to metrics.jsonl, and each checkpoint is committed once all ranks have
// written their shards. The spans of the recorded steps become trace.json, once all ranks have sent
// theirs. A report is written also if the run fails. Progress is written to `progress_out`.
// After SIGINT, SIGTERM or SIGHUP the step under way is finished and saved, and the signal is the
// error (kInterrupted, kTerminated); a second signal terminates at once. `watch` may end the launch
// early, without an error. On return no process is left; `failure` is the first cause, and its
// error ends with the hint how to resume. `lock`: of the run's folder; all arguments belong to one
// launch.
[[nodiscard]] TrainingEnd run_training(const ReadyRun& run,
                                       RunLock& lock,
                                       const TrainingRequest& request,
                                       const Log& log,
                                       std::FILE* progress_out,
                                       const StepObserver& watch);

}  // namespace motley
