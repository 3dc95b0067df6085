// A training run from its first process to its last: workers, metrics, checkpoints, trace.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "base/log.h"
#include "base/result.h"
#include "cluster/run/prepare.h"

namespace motley {

struct TrainingSummary {
  std::int64_t last_step = 0;
  double last_loss = 0;
  std::optional<double> last_eval_loss;
  double median_step_s = 0;  // of this session's steps but the first
  double tokens_per_s = 0;   // at the median step
  double predicted_step_s = 0;
  std::optional<std::filesystem::path> checkpoint;  // the newest committed in this session
  bool has_trace = false;                           // one was written in this session
};

// Starts a worker for each rank of the plan and follows them to the end. Every step's metrics go to
// metrics.jsonl, each checkpoint is committed when all ranks have written their shard, the recorded
// steps become trace.json, as far as they came. Progress goes to `progress_out`. When it returns no
// process is left; an error is the first cause.
[[nodiscard]] Result<TrainingSummary> run_training(const PreparedRun& run,
                                                   const TrainingRequest& request,
                                                   const Log& log,
                                                   std::FILE* progress_out);

}  // namespace motley
