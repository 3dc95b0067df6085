// The operations that TrainingLoop calls, performed by this rank's executor: a training step and a
// held-out evaluation, each together with all other ranks. Used by the compute thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "comm/frames/frame_link.h"
#include "pipeline/execute/executor.h"
#include "pipeline/schedule/action.h"
#include "plan/trace.h"
#include "training/vote/step_voter.h"
#include "worker/train/training_loop.h"

namespace motley {

using ScheduleOf = std::function<const Schedule&(std::int64_t step)>;

class TrainStep final : public StepRunner {
 public:
  // References must outlive it.
  TrainStep(ScheduleOf schedule_of, StepVoter& voter, FrameLink& link, Executor& executor)
      : schedule_of_(std::move(schedule_of)), voter_(voter), link_(link), executor_(executor) {}

  [[nodiscard]] const CheckpointState& progress() const override { return voter_.progress(); }

  [[nodiscard]] Result<TrainedStep> run_step() override;

  void set_evaluations(const EvaluationRecord& record) override { voter_.set_evaluations(record); }

  void record(TraceRecorder* trace) override { executor_.record(trace); }

 private:
  // Resident bytes, at most kRereadInterval_s old: a query in each step would slow short steps.
  [[nodiscard]] std::int64_t memory_bytes();

  const ScheduleOf schedule_of_;
  StepVoter& voter_;
  FrameLink& link_;
  Executor& executor_;
  std::int64_t memory_bytes_ = 0;
  std::optional<double> memory_read_at_s_;  // as now_s()
};

// Evaluates the first held-out batches, the same ones every time.
class HeldOutEvaluator final : public Evaluator {
 public:
  // `count` batches of `samples` samples each. References must outlive it; the schedules have only
  // forwards. bytes_per_token: of the data; 0 if another rank reads it.
  HeldOutEvaluator(int count,
                   int samples,
                   ScheduleOf schedule_of,
                   double bytes_per_token,
                   const StepVoter& voter,
                   Executor& executor)
      : count_(count),
        samples_(samples),
        schedule_of_(std::move(schedule_of)),
        bytes_per_token_(bytes_per_token),
        voter_(voter),
        executor_(executor) {}

  [[nodiscard]] Result<std::optional<Evaluation>> evaluate(std::int64_t step) override;

 private:
  const int count_;
  const int samples_;
  const ScheduleOf schedule_of_;
  const double bytes_per_token_;
  const StepVoter& voter_;
  Executor& executor_;
};

// Evaluates the anchor of a round in place of the parameters, after steps for which `is_adopted`
// holds. `exchange` exchanges the two.
class AnchorEvaluator final : public Evaluator {
 public:
  AnchorEvaluator(Evaluator& evaluator,
                  std::function<bool(std::int64_t step)> is_adopted,
                  std::function<void()> exchange)
      : evaluator_(evaluator), is_adopted_(std::move(is_adopted)), exchange_(std::move(exchange)) {}

  [[nodiscard]] Result<std::optional<Evaluation>> evaluate(std::int64_t step) override;

 private:
  Evaluator& evaluator_;
  const std::function<bool(std::int64_t step)> is_adopted_;
  const std::function<void()> exchange_;
};

// For a simulated device, which has no values to evaluate or save.
class NullEvaluator final : public Evaluator, public ShardSaver {
 public:
  [[nodiscard]] Result<std::optional<Evaluation>> evaluate(std::int64_t /*step*/) override {
    return std::optional<Evaluation>();
  }

  [[nodiscard]] Result<void> save() override { return {}; }

  void finish() override {}
};

}  // namespace motley
