// The loop over a rank's steps in one session: the next batch, when to evaluate and save, and the
// events to the launcher. Step, evaluation and save are implemented elsewhere
// (worker/train/train_job.cc). Used by the compute thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "plan/trace.h"
#include "protocol/launcher_channel.h"
#include "protocol/protocol.h"

namespace motley {

struct TrainedStep {
  StepReport report;             // without an evaluation
  bool ends = false;             // the session is to end after this step
  bool saves = false;            // a checkpoint is due after this step, by rank 0's clock
  bool is_before_decay = false;  // the learning rate of the next step begins to decay (wsd)
};

class StepRunner {
 public:
  virtual ~StepRunner() = default;

  // The progress after the last step.
  [[nodiscard]] virtual const CheckpointState& progress() const = 0;
  // Trains step number progress().step + 1, together with all other ranks.
  [[nodiscard]] virtual Result<TrainedStep> run_step() = 0;
  // Replaces the record of evaluations in progress().
  virtual void set_evaluations(const EvaluationRecord& record) = 0;
  // From now on each action's span is added to `trace` (nullptr: stop recording).
  virtual void record(TraceRecorder* trace) = 0;
};

class Evaluator {
 public:
  virtual ~Evaluator() = default;

  // Evaluates the parameters after `step`, together with all other ranks. Nothing if there is
  // nothing to evaluate.
  [[nodiscard]] virtual Result<std::optional<Evaluation>> evaluate(std::int64_t step) = 0;
};

class ShardSaver {
 public:
  virtual ~ShardSaver() = default;

  // Begins to write this rank's shard of a checkpoint of progress(), together with all other ranks.
  // The writer reports the outcome to the launcher. kCorrupt if the disk has too little space; any
  // other error ends the training.
  [[nodiscard]] virtual Result<void> save() = 0;
  // Waits until the current save is written and reported.
  virtual void finish() = 0;
};

struct TrainingLoopOptions {
  std::int64_t last_step = 0;
  std::int64_t trace_steps = 0;  // the number of recorded steps
  std::size_t trace_spans = 0;   // the limit of stored spans
  std::int64_t eval_every = 0;   // also after the last step; 0 = never
  // The number of evaluations in a row without a lower loss that ends the training; 0 = none does.
  // Only those at multiples of eval_every count.
  std::int64_t early_stopping = 0;
  bool keeps_best = false;          // also saves after each evaluation with the lowest loss so far
  bool saves_before_decay = false;  // also saves after the step before the decay
  // Also after the last step, and when the vote requests it; 0 = only then.
  std::int64_t save_every = 0;
  // Whether the training has one state after a step (next_state_step in plan/rounds/rounds_plan.h).
  // Evaluations, saves and an early end wait for such a step; the last one is.
  std::function<bool(std::int64_t step)> has_state = [](std::int64_t /*step*/) { return true; };
};

class TrainingLoop {
 public:
  // References must outlive the loop.
  TrainingLoop(const TrainingLoopOptions& options,
               StepRunner& steps,
               Evaluator& evaluator,
               ShardSaver& saver,
               EventSink& events);

  // Sends a "step" event after each step, "shard_failed" if a save cannot begin and, at the end,
  // "trace" events. Returns the first failure; a failed save for lack of disk space is not one. If
  // it succeeds, all begun saves have been written.
  [[nodiscard]] Result<void> run();

 private:
  void set_recording(std::int64_t steps_done);
  void end_recording();
  Result<void> run_step(std::int64_t step);
  // Adds the evaluation after `step` to the record. All ranks do the same: the loss has the same
  // bits on each of them. `counts`: for early stopping.
  void compare(std::int64_t step, const Evaluation& evaluation, bool counts);
  [[nodiscard]] bool is_evaluated(std::int64_t step);
  // Whether a save is due after `step`, which has just been trained.
  [[nodiscard]] bool is_saved(std::int64_t step);
  Result<void> save();

  const TrainingLoopOptions options_;
  StepRunner& steps_;
  Evaluator& evaluator_;
  ShardSaver& saver_;
  EventSink& events_;
  TraceRecorder trace_;
  bool changed_nothing_ = false;   // by the last step
  bool ends_ = false;              // the last step ended the session, before options_.last_step
  bool save_waits_ = false;        // for a step with a state that is not skipped
  bool evaluation_waits_ = false;  // one by eval_every, for a step with a state
  bool is_before_decay_ = false;   // the last step is
  bool is_best_ = false;           // the last step has the lowest held-out loss so far
  bool has_sent_trace_ = false;
};

}  // namespace motley
