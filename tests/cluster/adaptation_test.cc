#include "cluster/replan/adaptation.h"

#include <chrono>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/partitioner/random_problem.h"

namespace motley {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(StepWindows, AreTheMediansOfWindowsThatDouble) {
  Plan plan;
  plan.ranks.resize(2);
  StepWindows steps(plan);
  std::int64_t step = 0;
  for (const std::size_t window : {8U, 16U, 32U}) {
    for (std::size_t i = 0; i < window + (window == 8 ? 1 : 0); ++i) {
      ++step;
      // The first step, and a disturbed one, do not affect the medians.
      const double slow = step == 1 || i == 3 ? 100 : 1;
      EXPECT_FALSE(steps.add(
          Rank{0},
          {.step = step, .step_s = 3 * slow, .times = {.compute_s = slow}, .memory_bytes = step}));
      const auto measured =
          steps.add(Rank{1}, {.step = step, .step_s = 4 * slow, .times = {.compute_s = 2 * slow}});
      const bool is_last = i + 1 == window + (window == 8 ? 1 : 0);
      ASSERT_EQ(measured.has_value(), is_last) << step;
      if (!is_last) continue;
      EXPECT_EQ(measured->busy_s, (std::vector<double>{1, 2}));
      EXPECT_EQ(measured->step_s, 4);
      EXPECT_EQ(measured->peak_bytes, (std::vector<std::int64_t>{step, 0}));
    }
  }
}

TEST(StepWindows, BeginAnewWithoutWhatWasDisturbed) {
  Plan plan;
  plan.ranks.resize(1);
  StepWindows steps(plan);
  for (int i = 0; i < 5; ++i) (void)steps.add(Rank{0}, {.step_s = 9, .times = {.compute_s = 9}});
  steps.restart_window();
  for (int i = 0; i < 7; ++i)
    EXPECT_FALSE(steps.add(Rank{0}, {.step_s = 1, .times = {.compute_s = 1}}));
  EXPECT_EQ(steps.add(Rank{0}, {.step_s = 1, .times = {.compute_s = 1}})->step_s, 1);
}

// Two machines with equal profiles; the second actually takes three times as long.
class AdaptationOfTwo : public testing::Test {
 protected:
  AdaptationOfTwo() {
    Problem problem;
    problem.layers.assign(12, {.work_s = 0.1, .output_floats = 10});
    problem.machines = {{1}, {1}};
    input_ = problem.input();
    const auto plan = make_plan(input_);
    if (plan.ok()) plan_ = *plan;
  }

  std::unique_ptr<Adaptation> adaptation(AdaptationRules rules,
                                         std::optional<std::string> change = {}) {
    return std::make_unique<Adaptation>(
        input_, plan_, rules, [change](const Plan&) { return change; }, log_);
  }

  // Trains until something is reported or decided, but at most `steps` steps.
  void train(Adaptation& adaptation, std::int64_t steps) {
    for (std::int64_t step = 1; step <= steps && lines_.empty() && !adaptation.plan_switch();
         ++step) {
      for (std::size_t r = 0; r < plan_.ranks.size(); ++r) {
        const double factor = r == 1 ? 3 : 1;
        const auto line =
            adaptation.on_step(Rank{static_cast<std::int32_t>(r)},
                               {.step = step,
                                .step_s = 3 * plan_.predicted_step_s,
                                .times = {.compute_s = factor * plan_.ranks[r].compute_s}});
        if (line) lines_.push_back(*line);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }

  PlanningInput input_;
  Plan plan_;
  std::vector<std::string> lines_;
  Log log_{"", LogLevel::kError, [](std::string_view) {}};
};

constexpr std::int64_t kLong = 1'000'000;

TEST_F(AdaptationOfTwo, TellsOnceOfABetterPlan) {
  ASSERT_EQ(plan_.rank_count(), 2);
  const auto adapts = adaptation({.last_step = kLong});
  train(*adapts, 5'000);
  ASSERT_EQ(lines_.size(), 1U);
  EXPECT_THAT(lines_.front(),
              AllOf(HasSubstr("s a step; this plan, " + cut_text(plan_) + ", takes"),
                    HasSubstr("--resume --adapt")));
  EXPECT_FALSE(adapts->plan_switch());
}

TEST_F(AdaptationOfTwo, MovesWhereItMay) {
  const auto adapts = adaptation({.switches = true, .last_step = kLong});
  train(*adapts, 5'000);
  ASSERT_TRUE(adapts->plan_switch());
  ASSERT_EQ(lines_.size(), 1U);
  EXPECT_THAT(lines_.front(), HasSubstr("the layers are moved"));
  EXPECT_NE(cut_text(adapts->plan_switch()->plan), cut_text(plan_));
  EXPECT_GT(adapts->plan_switch()->gain(), 0.05);
}

TEST_F(AdaptationOfTwo, SaysWhereSumsWillBeRoundedOtherwise) {
  const auto adapts =
      adaptation({.switches = true, .last_step = kLong}, "other layers on replicas");
  train(*adapts, 5'000);
  EXPECT_TRUE(adapts->plan_switch());
  ASSERT_EQ(lines_.size(), 1U);
  EXPECT_THAT(lines_.front(), HasSubstr(", with other layers on replicas, which rounds sums"));
}

// A relaunch takes time that so few remaining steps do not recover.
TEST_F(AdaptationOfTwo, DoesNotMoveForTheLastSteps) {
  const auto adapts = adaptation({.switches = true, .last_step = 1});
  train(*adapts, 300);
  EXPECT_FALSE(adapts->plan_switch());
}

TEST_F(AdaptationOfTwo, AsksForMoreWithEachMove) {
  const auto adapts = adaptation({.switches = true, .switches_done = 18, .last_step = kLong});
  train(*adapts, 300);
  EXPECT_FALSE(adapts->plan_switch());
}

TEST_F(AdaptationOfTwo, LearnsNothingWithoutAProfile) {
  input_.profile.devices.clear();
  const auto adapts = adaptation({.switches = true, .last_step = kLong});
  train(*adapts, 100);
  EXPECT_FALSE(adapts->plan_switch());
}

}  // namespace
}  // namespace motley
