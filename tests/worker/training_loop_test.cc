#include "worker/train/training_loop.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "base/json.h"

namespace motley {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

// Implements all interfaces of the loop, and logs its calls in order.
class Script final : public StepRunner, public Evaluator, public ShardSaver, public EventSink {
 public:
  CheckpointState state;
  bool holds_parameters = true;
  bool skips = false;
  std::int64_t ends_after = 0;  // step; 0 = none
  std::int64_t decays_after = 0;
  std::string fails_at;                        // a log entry
  std::map<std::int64_t, double> eval_losses;  // by step; others are 1.5
  std::vector<std::string> log;
  std::vector<Json> events;
  TraceRecorder* trace = nullptr;

  [[nodiscard]] const CheckpointState& progress() const override { return state; }

  [[nodiscard]] Result<TrainedStep> run_step() override {
    MOTLEY_TRY(note("step", state.step + 1));
    ++state.step;
    if (trace != nullptr) trace->add({.name = "F0.0", .step = static_cast<int>(state.step)});
    return TrainedStep{
        .report =
            {.step = state.step,
             .outcome = {.loss = 2.5, .tokens = 7, .accuracy = 0.5, .lr = 0.25, .skipped = skips},
             .step_s = 3,
             .times = {.wait_s = {{0.25, 0, 0.75}}},
             .wire_bytes = 99,
             .sent = {{Rank{1}, 99}},
             .memory_bytes = 4096},
        .ends = state.step == ends_after,
        .is_before_decay = state.step == decays_after};
  }

  void record(TraceRecorder* to) override { trace = to; }

  void set_evaluations(const EvaluationRecord& record) override { state.evaluations = record; }

  [[nodiscard]] Result<std::optional<Evaluation>> evaluate(std::int64_t step) override {
    MOTLEY_TRY(note("evaluate", step));
    if (!holds_parameters) return std::optional<Evaluation>();
    const auto loss = eval_losses.find(step);
    return std::optional(Evaluation{64, loss == eval_losses.end() ? 1.5 : loss->second, 0.75, 4});
  }

  [[nodiscard]] Result<void> save() override { return note("save", state.step); }

  void finish() override { log.emplace_back("finish"); }

  void send(const Json& event) override {
    events.push_back(event);
    log.push_back("send " + event.at("event").get<std::string>());
  }

  Result<void> run(const TrainingLoopOptions& options) {
    return TrainingLoop(options, *this, *this, *this, *this).run();
  }

 private:
  Result<void> note(const std::string& what, std::int64_t step) {
    log.push_back(what + " " + std::to_string(step));
    if (log.back() == fails_at) return Error{ErrorCode::kPeer, fails_at + " failed", "", ""};
    return {};
  }
};

TEST(TrainingLoop, TrainsEvaluatesAndSavesWhenItIsDue) {
  Script script;
  const auto ran = script.run({.last_step = 5, .eval_every = 3, .save_every = 2});
  ASSERT_TRUE(ran.ok()) << describe(ran.error());
  EXPECT_THAT(script.log, ElementsAre("step 1", "send step",                //
                                      "step 2", "send step", "save 2",      //
                                      "step 3", "evaluate 3", "send step",  //
                                      "step 4", "send step", "save 4",      //
                                      "step 5", "evaluate 5", "send step", "save 5", "finish"));
}

TEST(TrainingLoop, SavesAfterTheLastStepWhateverItsNumber) {
  Script script;
  ASSERT_TRUE(script.run({.last_step = 1}).ok());
  EXPECT_THAT(script.log, ElementsAre("step 1", "send step", "save 1", "finish"));
}

TEST(TrainingLoop, EndsAfterTheStepThatEndsTheSessionAndSavesIt) {
  Script script;
  script.skips = true;
  script.ends_after = 2;
  ASSERT_TRUE(script.run({.last_step = 5}).ok());
  EXPECT_THAT(script.log, ElementsAre("step 1", "send step",  //
                                      "step 2", "send step", "save 2", "finish"));
}

TEST(TrainingLoop, SavesEachStepThatIsTheBestSoFar) {
  Script script;
  script.eval_losses = {{2, 3}, {4, 2}, {6, 2.5}, {8, 1}, {9, 0.5}};
  ASSERT_TRUE(script.run({.last_step = 9, .eval_every = 2, .keeps_best = true}).ok());
  const auto saves = [&] {
    std::vector<std::string> found;
    std::ranges::copy_if(script.log, std::back_inserter(found),
                         [](const std::string& line) { return line.starts_with("save"); });
    return found;
  }();
  EXPECT_THAT(saves, ElementsAre("save 2", "save 4", "save 8", "save 9"));
  EXPECT_EQ(script.state.evaluations, (EvaluationRecord{BestEvaluation{9, 0.5}, 1, 0}));
  Script plain;
  plain.eval_losses = script.eval_losses;
  ASSERT_TRUE(plain.run({.last_step = 9, .eval_every = 2}).ok());
  EXPECT_FALSE(plain.state.evaluations);
}

TEST(TrainingLoop, StopsAfterEvaluationsWithoutALowerLoss) {
  Script script;
  script.eval_losses = {{2, 3}, {4, 2}, {6, 2.5}, {8, 2}, {10, 1}};
  ASSERT_TRUE(script.run({.last_step = 20, .eval_every = 2, .early_stopping = 2}).ok());
  EXPECT_EQ(script.state.step, 8);
  EXPECT_EQ(script.state.evaluations->without_lower, 2);
  EXPECT_EQ(script.log[script.log.size() - 2], "save 8");
}

// The evaluation at the end of a session is not one of the uninterrupted run.
TEST(TrainingLoop, StopsAfterTheSameStepIfItIsInterrupted) {
  const std::map<std::int64_t, double> losses = {{3, 2}, {4, 0.5}, {6, 1.8}, {9, 1.9}, {12, 1.8}};
  const TrainingLoopOptions to_the_end{.last_step = 20, .eval_every = 3, .early_stopping = 2};
  Script straight;
  straight.eval_losses = losses;
  ASSERT_TRUE(straight.run(to_the_end).ok());
  EXPECT_EQ(straight.state.step, 12);
  Script resumed;
  resumed.eval_losses = losses;
  TrainingLoopOptions first = to_the_end;
  first.last_step = 4;
  ASSERT_TRUE(resumed.run(first).ok());
  EXPECT_EQ(resumed.state.evaluations->best, (BestEvaluation{4, 0.5}));
  ASSERT_TRUE(resumed.run(to_the_end).ok());
  EXPECT_EQ(resumed.state.step, 12);
  EXPECT_EQ(resumed.state.evaluations->without_lower, straight.state.evaluations->without_lower);
}

TEST(TrainingLoop, SavesBeforeTheRateDecays) {
  Script script;
  script.decays_after = 2;
  ASSERT_TRUE(script.run({.last_step = 4, .saves_before_decay = true}).ok());
  EXPECT_THAT(script.log, Contains("save 2"));
  Script only_at_the_end;
  only_at_the_end.decays_after = 2;
  ASSERT_TRUE(only_at_the_end.run({.last_step = 4}).ok());
  EXPECT_THAT(only_at_the_end.log, testing::Not(Contains("save 2")));
}

TEST(TrainingLoop, GoesOnAfterTheStepsThatAreDone) {
  Script script;
  script.state.step = 7;
  ASSERT_TRUE(script.run({.last_step = 8}).ok());
  EXPECT_EQ(script.log.front(), "step 8");
  Script done;
  done.state.step = 8;
  ASSERT_TRUE(done.run({.last_step = 8}).ok());
  EXPECT_THAT(done.log, ElementsAre("finish"));
}

TEST(TrainingLoop, ReportsWhatTheStepWas) {
  Script script;
  script.skips = true;
  ASSERT_TRUE(script.run({.last_step = 1, .eval_every = 1}).ok());
  const auto report = step_from_json(script.events.front(), "the event");
  ASSERT_TRUE(report.ok()) << describe(report.error());
  EXPECT_EQ(report->step, 1);
  EXPECT_EQ(report->outcome.loss, 2.5);
  EXPECT_EQ(report->outcome.tokens, 7);
  EXPECT_EQ(report->outcome.lr, 0.25);
  EXPECT_TRUE(report->outcome.skipped);
  EXPECT_EQ(report->step_s, 3);
  EXPECT_EQ(report->times.wait_s.total(), 1);
  EXPECT_EQ(report->times.wait_s.of(WaitCause::kSum), 0.75);
  EXPECT_EQ(report->wire_bytes, 99U);
  EXPECT_EQ(report->sent, (std::vector<StepReport::Sent>{{Rank{1}, 99}}));
  EXPECT_EQ(report->memory_bytes, 4096);
  ASSERT_TRUE(report->evaluation.has_value());
  EXPECT_EQ(report->evaluation->loss, 1.5);
  EXPECT_EQ(report->evaluation->tokens, 64);
  EXPECT_EQ(report->evaluation->bytes_per_token, 4);
  EXPECT_EQ(report->outcome.accuracy, 0.5);
  EXPECT_EQ(report->evaluation->accuracy, 0.75);
}

TEST(TrainingLoop, TellsOfNoEvaluationWhereNothingIsHeld) {
  Script script;
  script.holds_parameters = false;
  ASSERT_TRUE(script.run({.last_step = 1, .eval_every = 1}).ok());
  EXPECT_THAT(script.log, ElementsAre("step 1", "evaluate 1", "send step", "save 1", "finish"));
  const auto report = step_from_json(script.events.front(), "the event");
  ASSERT_TRUE(report.ok()) << describe(report.error());
  EXPECT_FALSE(report->evaluation.has_value());
}

// The first two steps touch memory for the first time.
TEST(TrainingLoop, TracesTheStepsAfterTheWarmUp) {
  Script script;
  script.state.step = 10;
  ASSERT_TRUE(script.run({.last_step = 16, .trace_steps = 3, .trace_spans = 100}).ok());
  EXPECT_EQ(script.trace, nullptr);
  int traces = 0;
  for (const Json& event : script.events) {
    if (event.at("event") != "trace") continue;
    ++traces;
    EXPECT_EQ(event.at("spans").size(), 3U);
  }
  EXPECT_EQ(traces, 1);
  const auto sent = std::ranges::find(script.log, "send trace");
  ASSERT_NE(sent, script.log.end());
  EXPECT_EQ(*std::next(sent), "step 16") << "as soon as it is complete";
}

TEST(TrainingLoop, SendsTheTraceOfARunThatEndsWhileItRecords) {
  Script script;
  ASSERT_TRUE(script.run({.last_step = 4, .trace_steps = 100, .trace_spans = 100}).ok());
  EXPECT_THAT(script.log, Contains("send trace"));
  EXPECT_EQ(script.trace, nullptr);
}

TEST(TrainingLoop, SendsNoTraceOfNothing) {
  Script script;
  ASSERT_TRUE(script.run({.last_step = 5, .trace_steps = 0, .trace_spans = 100}).ok());
  for (const Json& event : script.events) EXPECT_NE(event.at("event"), "trace");
}

TEST(TrainingLoop, EndsWithTheFirstFailure) {
  for (const char* failing : {"step 2", "evaluate 2", "save 2"}) {
    Script script;
    script.fails_at = failing;
    const auto ran = script.run({.last_step = 4, .eval_every = 1, .save_every = 1});
    ASSERT_FALSE(ran.ok()) << failing;
    EXPECT_EQ(ran.error().what, std::string(failing) + " failed");
    EXPECT_EQ(script.log.back(), failing);
  }
}

}  // namespace
}  // namespace motley
