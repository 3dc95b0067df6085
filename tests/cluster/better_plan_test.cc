#include "cluster/replan/better_plan.h"

#include <gmock/gmock.h>

#include "partitioner/search/simulate_plan.h"
#include "tests/partitioner/random_problem.h"

namespace motley {
namespace {

constexpr double kLeastGain = 0.05;

PlanningInput input_of_two(double first_speed, double second_speed) {
  Problem problem;
  problem.layers.assign(12, {.work_s = 0.1, .output_floats = 10});
  problem.machines = {{first_speed}, {second_speed}};
  return problem.input();
}

// The measurement of a run of `plan` if the machines are those of `truth`.
RunMeasurement measured(const Plan& plan, const PlanningInput& truth) {
  RunMeasurement run;
  run.plan = plan;
  const auto step = simulate_plan(plan, truth.model, truth.cluster, truth.profile, truth.options);
  if (!step.ok()) ADD_FAILURE() << describe(step.error());
  if (!step.ok()) return run;
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
    run.busy_s.push_back(step->step.compute_s[r] + step->step.codec_s[r]);
    run.peak_bytes.push_back(0);
  }
  run.step_s = step->step.step_s;
  return run;
}

Plan plan_of(const PlanningInput& input) {
  const auto plan = make_plan(input);
  if (!plan.ok()) ADD_FAILURE() << describe(plan.error());
  return plan.ok() ? *plan : Plan();
}

TEST(BetterPlan, NoneWhereTheRunDoesWhatWasPredicted) {
  const PlanningInput input = input_of_two(1, 0.5);
  const auto better = find_better_plan(input, measured(plan_of(input), input), kLeastGain);
  ASSERT_TRUE(better.ok()) << describe(better.error());
  EXPECT_FALSE(better->has_value());
}

TEST(BetterPlan, IsThatOfTheMachinesAsTheyAre) {
  const PlanningInput believed = input_of_two(1, 1);
  const PlanningInput truth = input_of_two(1, 0.4);
  const Plan first = plan_of(believed);
  const RunMeasurement run = measured(first, truth);
  const auto better = find_better_plan(believed, run, kLeastGain);
  ASSERT_TRUE(better.ok()) << describe(better.error());
  ASSERT_TRUE(better->has_value());
  EXPECT_NEAR((*better)->present_step_s, run.step_s, 1e-9);
  EXPECT_EQ(cut_text((*better)->plan), cut_text(plan_of(truth)));
  EXPECT_NEAR(measured((*better)->plan, truth).step_s, (*better)->plan.predicted_step_s, 1e-9);
  EXPECT_NEAR((*better)->gain(), 1 - (*better)->plan.predicted_step_s / run.step_s, 1e-9);
  // After the switch, the run finds no further improvement.
  PlanningInput next = believed;
  next.profile = (*better)->profile;
  const auto again = find_better_plan(next, measured((*better)->plan, truth), kLeastGain);
  ASSERT_TRUE(again.ok());
  EXPECT_FALSE(again->has_value());
}

TEST(BetterPlan, MustSaveWhatIsAsked) {
  const PlanningInput believed = input_of_two(1, 1);
  const RunMeasurement run = measured(plan_of(believed), input_of_two(1, 0.4));
  const double gain = (*find_better_plan(believed, run, kLeastGain))->gain();
  ASSERT_GT(gain, kLeastGain);
  EXPECT_TRUE(find_better_plan(believed, run, gain - 0.01)->has_value());
  EXPECT_FALSE(find_better_plan(believed, run, gain + 0.01)->has_value());
}

// A measured step that is shorter than the calibrated prediction leaves less to gain.
TEST(BetterPlan, IsHeldAgainstTheMeasuredStepToo) {
  const PlanningInput believed = input_of_two(1, 1);
  RunMeasurement run = measured(plan_of(believed), input_of_two(1, 0.4));
  const auto better = find_better_plan(believed, run, kLeastGain);
  ASSERT_TRUE(better->has_value());
  run.step_s = (*better)->plan.predicted_step_s;
  EXPECT_FALSE(find_better_plan(believed, run, kLeastGain)->has_value());
}

TEST(BetterPlan, CutsAreToldStageByStage) {
  Plan plan;
  plan.ranks = {{.machine = "desk"}, {.machine = "box"}, {.machine = "attic"}};
  plan.chunks = {{.first_layer = 0, .layer_count = 4, .replicas = {{Rank{0}, 4}}},
                 {.first_layer = 4, .layer_count = 2, .replicas = {{Rank{1}, 3}, {Rank{2}, 1}}}};
  EXPECT_EQ(cut_text(plan), "desk:4 box×3+attic×1:2");
}

}  // namespace
}  // namespace motley
