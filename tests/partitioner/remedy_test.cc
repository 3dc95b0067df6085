#include "partitioner/report/remedy.h"

#include <cstdlib>

#include <gmock/gmock.h>

#include "partitioner/report/what_if.h"
#include "tests/partitioner/random_problem.h"

namespace motley {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr std::int64_t kGib = std::int64_t{1} << 30;

// Four layers of 1.04 GiB each (parameters, gradients and moments) for two machines.
Problem four_gib_on(std::int64_t first_bytes, std::int64_t second_bytes) {
  Problem problem;
  problem.layers.assign(4, {.work_s = 0.1, .parameters = kGib / 16, .output_floats = 100});
  problem.machines = {{1, first_bytes}, {1, second_bytes}};
  problem.options.global_batch = 4;
  return problem;
}

TEST(Remedy, NamesTheLeastMemoryOfTheMachineThatNeedsLeast) {
  const auto changes = changes_that_fit(four_gib_on(3 * kGib / 2, 11 * kGib / 4).input());
  // m0 lacks memory for one layer more, m1 only for a third of one.
  EXPECT_THAT(changes, Contains("give m1 0.38 GiB more memory (3.13 GiB in all)"));
  EXPECT_THAT(changes, Contains("add another machine like m0"));
}

TEST(Remedy, IsAHigherLimitWhereMemoryIsFreeThatTheFileHolds) {
  PlanningInput input = four_gib_on(3 * kGib / 2, 20 * kGib).input();
  input.cluster.machines[1].memory_gib = 2.75;
  EXPECT_THAT(changes_that_fit(input),
              Contains("set memory_gib of m1 to 3.13 (2.75 now; 20 GiB are free there)"));
}

TEST(Remedy, ASmallerMicroBatchIsOneWhenItIsEnough) {
  Problem problem = four_gib_on(kGib, kGib);
  for (LayerSketch& layer : problem.layers) layer = {.work_s = 0.1, .saved_bytes = kGib / 8};
  problem.options.micro_batch = 4;
  EXPECT_THAT(changes_that_fit(problem.input()), Contains("set train.micro_batch = 2"));
}

TEST(Remedy, StandsInTheErrorOfThePlan) {
  const auto plan = plan_or_remedy(four_gib_on(kGib, kGib).input());
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().code, ErrorCode::kInfeasible);
  EXPECT_THAT(plan.error().what, HasSubstr("lacks"));
  EXPECT_THAT(plan.error().remedy, HasSubstr("GiB in all)"));
}

TEST(Remedy, LeavesOtherErrorsAlone) {
  Problem problem = four_gib_on(kGib, kGib);
  problem.options.stages = 9;
  const auto plan = plan_or_remedy(problem.input());
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().remedy, make_plan(problem.input()).error().remedy);
}

// Parses "give m1 0.25 GiB more memory (3 GiB in all)" into changes of what_if.h: this amount, and
// 4 % less.
RC_GTEST_PROP(Remedy, TheNamedMemoryIsEnoughAndNotMuchMoreThanNeeded, ()) {
  Problem problem = random_problem();
  for (MachineSketch& machine : problem.machines) machine.memory_bytes /= 4;
  const PlanningInput input = problem.input();
  const auto plan = make_plan(input);
  if (plan.ok()) return;
  const auto changes = changes_that_fit(input);
  RC_ASSERT(!changes.empty());
  const std::string& text = changes.front();
  RC_ASSERT(text.starts_with("give m"));
  const std::string machine = text.substr(5, 2);
  const double gib = std::strtod(text.c_str() + text.find('(') + 1, nullptr);
  const double extra_gib = gib - machine_memory_gib(input, machine);
  const auto fits = [&](double memory_gib) {
    return make_plan(*apply_changes(input,
                                    {fmt::format("machine.{}.memory_gib=x{}", machine,
                                                 memory_gib / machine_memory_gib(input, machine))}))
        .ok();
  };
  RC_ASSERT(fits(gib));
  RC_ASSERT(!fits(gib - 0.05 * extra_gib - 0.01 * gib));
}

}  // namespace
}  // namespace motley
