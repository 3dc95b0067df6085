// The steps of one rank, from the first of this session to the last: which batch comes next, when
// there is an evaluation and a checkpoint, and what the launcher hears of it. What a batch, an
// evaluation and a save consist of is said by others (worker/train_job.cc). Used by the compute
// thread alone.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "pipeline/execute/executor.h"
#include "plan/trace.h"
#include "protocol/launcher_channel.h"
#include "protocol/protocol.h"
#include "training/vote/step_outcome.h"

namespace motley {

// What this rank knows of a training step when it is over.
struct TrainedStep {
  StepOutcome outcome;
  RunTimes times;
  std::uint64_t wire_bytes = 0;        // sent by this rank
  std::vector<StepReport::Sent> sent;  // of it, by who got it
  std::int64_t memory_bytes = 0;       // resident after it; 0 = unknown
};

class StepRunner {
 public:
  virtual ~StepRunner() = default;

  // Where the training stands: after the last step.
  [[nodiscard]] virtual const CheckpointState& progress() const = 0;
  // Trains step number progress().step + 1, together with all other ranks.
  [[nodiscard]] virtual Result<TrainedStep> run_step() = 0;
  // From now on each action's span is added to `trace` (nullptr: no longer).
  virtual void record(TraceRecorder* trace) = 0;
};

struct Evaluation {
  std::int64_t tokens = 0;         // of all batches; 0: none had a target
  double loss = 0;                 // mean over the tokens; NaN where there are none
  std::optional<double> accuracy;  // as StepOutcome
  double bytes_per_token = 0;      // of the held-out text; 0 where this rank does not know
};

class Evaluator {
 public:
  virtual ~Evaluator() = default;

  // With the parameters as they are after `step`, together with all other ranks. Nothing where
  // there is nothing to evaluate.
  [[nodiscard]] virtual Result<std::optional<Evaluation>> evaluate(std::int64_t step) = 0;
};

class ShardSaver {
 public:
  virtual ~ShardSaver() = default;

  // Begins to write this rank's part of a checkpoint of progress(), together with all other ranks;
  // what becomes of it the launcher is told by whoever writes. kCorrupt when the disk has no room;
  // any other error ends the training.
  [[nodiscard]] virtual Result<void> save() = 0;
  // Waits until what was begun is written, and told.
  virtual void finish() = 0;
};

struct TrainingLoopOptions {
  std::int64_t last_step = 0;
  std::int64_t trace_steps = 0;  // how many are recorded, and
  std::size_t trace_spans = 0;   // the most spans that are kept of them
  std::int64_t eval_every = 0;   // and after the last step; 0 = never
  // And after the last step, and where the vote says so; 0 = only then.
  std::int64_t save_every = 0;
};

class TrainingLoop {
 public:
  // All that is lent must outlive the loop.
  TrainingLoop(const TrainingLoopOptions& options,
               StepRunner& steps,
               Evaluator& evaluator,
               ShardSaver& saver,
               EventSink& events);

  // Sends a "step" event after each step, "shard_failed" where a save cannot begin and, at the end,
  // "trace" events. Returns the first failure; a disk that does not take a save is none. What was
  // saved is written when it returns without one.
  [[nodiscard]] Result<void> run();

 private:
  void set_recording(std::int64_t steps_done);
  Result<void> run_step(std::int64_t step);
  [[nodiscard]] bool is_evaluated(std::int64_t step) const;
  // Whether a save is due after `step`, which has just been trained.
  [[nodiscard]] bool is_saved(std::int64_t step);
  Result<void> save();

  const TrainingLoopOptions options_;
  StepRunner& steps_;
  Evaluator& evaluator_;
  ShardSaver& saver_;
  EventSink& events_;
  TraceRecorder trace_;
  bool changed_nothing_ = false;  // the last step
  bool ends_ = false;             // it was the last step of the session, though not of options_
  bool save_waits_ = false;       // for a step that is not skipped
};

}  // namespace motley
