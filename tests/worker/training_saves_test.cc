// When the training loop saves, and its messages if a save fails.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "base/json.h"
#include "worker/train/training_loop.h"

namespace motley {
namespace {

using testing::ElementsAre;

// Skips given steps, and has a full disk at others.
class FakeStage final : public StepRunner, public Evaluator, public ShardSaver, public EventSink {
 public:
  std::vector<std::int64_t> skipped;
  std::vector<std::int64_t> without_targets;
  std::vector<std::int64_t> due;  // by rank 0's clock, from its vote
  std::int64_t full_at = 0;
  ErrorCode full_is = ErrorCode::kCorrupt;
  std::vector<std::string> saves;  // "saved 3", "shard_failed 4"

  [[nodiscard]] const CheckpointState& progress() const override { return state_; }

  [[nodiscard]] Result<TrainedStep> run_step() override {
    ++state_.step;
    TrainedStep step;
    step.report.outcome.tokens =
        std::ranges::find(without_targets, state_.step) != without_targets.end() ? 0 : 8;
    step.report.outcome.skipped = std::ranges::find(skipped, state_.step) != skipped.end();
    step.saves = std::ranges::find(due, state_.step) != due.end();
    return step;
  }

  void set_evaluations(const EvaluationRecord& record) override { state_.evaluations = record; }

  void record(TraceRecorder* /*trace*/) override {}

  [[nodiscard]] Result<std::optional<Evaluation>> evaluate(std::int64_t /*step*/) override {
    return std::optional<Evaluation>();
  }

  [[nodiscard]] Result<void> save() override {
    if (state_.step == full_at) return Error{full_is, "full", "", ""};
    saves.push_back("saved " + std::to_string(state_.step));
    return {};
  }

  void finish() override { saves.emplace_back("finished"); }

  void send(const Json& event) override {
    const auto kind = event.at("event").get<std::string>();
    if (kind.starts_with("shard")) saves.push_back(kind + " " + event.at("step").dump());
  }

  Result<void> run(const TrainingLoopOptions& options) {
    return TrainingLoop(options, *this, *this, *this, *this).run();
  }

 private:
  CheckpointState state_;
};

TEST(TrainingSaves, WaitForAStepThatIsNotSkipped) {
  FakeStage run;
  run.skipped = {2, 4, 5};
  ASSERT_TRUE(run.run({.last_step = 9, .save_every = 2}).ok());
  EXPECT_THAT(run.saves, ElementsAre("saved 3", "saved 6", "saved 8", "saved 9", "finished"));
}

TEST(TrainingSaves, WaitForAStepThatHasTargets) {
  FakeStage run;
  run.without_targets = {2, 3, 9};
  ASSERT_TRUE(run.run({.last_step = 9, .save_every = 2}).ok());
  EXPECT_THAT(run.saves, ElementsAre("saved 4", "saved 6", "saved 8", "saved 9", "finished"));
}

TEST(TrainingSaves, AreMadeWhenTheVoteSaysSo) {
  FakeStage run;
  run.due = {2, 5, 6};
  run.skipped = {6};
  ASSERT_TRUE(run.run({.last_step = 9, .save_every = 4}).ok());
  EXPECT_THAT(run.saves, ElementsAre("saved 2", "saved 4", "saved 5", "saved 7", "saved 8",
                                     "saved 9", "finished"));
}

TEST(TrainingSaves, AreMadeAfterTheLastStepWhateverItWas) {
  FakeStage run;
  run.skipped = {1, 2, 3};
  ASSERT_TRUE(run.run({.last_step = 3, .save_every = 1}).ok());
  EXPECT_THAT(run.saves, ElementsAre("saved 3", "finished"));
}

TEST(TrainingSaves, ThatADiskDoesNotTakeEndNothing) {
  FakeStage run;
  run.full_at = 2;
  ASSERT_TRUE(run.run({.last_step = 4, .save_every = 1}).ok());
  EXPECT_THAT(run.saves,
              ElementsAre("saved 1", "shard_failed 2", "saved 3", "saved 4", "finished"));
}

TEST(TrainingSaves, ThatFailForAnotherReasonEndTheTraining) {
  FakeStage run;
  run.full_at = 2;
  run.full_is = ErrorCode::kDiverged;
  const Result<void> ran = run.run({.last_step = 4, .save_every = 1});
  ASSERT_FALSE(ran.ok());
  EXPECT_EQ(ran.error().code, ErrorCode::kDiverged);
  EXPECT_THAT(run.saves, ElementsAre("saved 1"));
}

}  // namespace
}  // namespace motley
