// A training run from its first process to its last: workers, metrics, checkpoints, trace.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/log.h"
#include "base/result.h"
#include "cluster/run/prepare.h"
#include "protocol/protocol.h"

namespace motley {

struct TrainingSummary {
  std::int64_t last_step = 0;
  std::optional<double> last_loss;  // of the last step with targets
  std::optional<double> last_eval_loss;
  std::optional<double> last_eval_accuracy;  // the share of the held-out tokens predicted right
  double median_step_s = 0;                  // of this session's steps but the first
  double units_per_s = 0;                    // at the median step
  double predicted_step_s = 0;
  std::vector<std::string> numbers;                 // by rank, that its products were computed in
  std::optional<std::filesystem::path> checkpoint;  // the newest committed in this session
  bool has_trace = false;                           // one was written in this session
  bool is_finished = false;                         // the run's last step is done
};

// How a launch ended.
struct TrainingEnd {
  TrainingSummary summary;     // of what was trained, however it ended
  std::optional<Error> early;  // why it ended before its last step
  PeerFault fault;             // what is known of the machines by which it did
  double got_on_at_s = 0;      // as now_s(): when it was last seen to get on
};

// What somebody who looks at the steps wants.
struct StepDirective {
  std::string line;     // that people are told; "" = nothing
  bool finish = false;  // the step under way is saved, and the launch ends as if it were its last
};

// Sees each step of each rank; memory is 0 where the rank's is not what its device holds.
using StepWatch = std::function<StepDirective(Rank rank, const StepReport& report)>;

// "step 40 done, loss 2.3140, held-out loss 2.4000, 45.10 % of the held-out right": in one line.
[[nodiscard]] std::string done_text(const TrainingSummary& summary, bool is_virtual);

// Starts a worker for each rank of the plan and follows them to the end. Every step's metrics go to
// metrics.jsonl, each checkpoint is committed when all ranks have written their shard, the recorded
// steps become trace.json, as far as they came, and a report is written, also of a run that fails.
// Progress goes to `progress_out`. SIGINT, SIGTERM and SIGHUP let the step under way end and be
// saved, and are the error then (kInterrupted, kTerminated); a second one ends everything at once.
// `watch` may end the launch early, without an error. When it returns no process is left; `early`
// is the first cause, and ends with the way on.
[[nodiscard]] TrainingEnd run_training(const PreparedRun& run,
                                       const TrainingRequest& request,
                                       const Log& log,
                                       std::FILE* progress_out,
                                       const StepWatch& watch);

}  // namespace motley
