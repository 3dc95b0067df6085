#include "partitioner/period_search/period_search.h"

#include <limits>

#include "base/wire_sizes.h"
#include "partitioner/cost/step_estimate.h"
#include "partitioner/period_search/period_probe.h"
#include "partitioner/period_search/slot_classes.h"
#include "tests/partitioner/oracle.h"
#include "tests/partitioner/random_problem.h"

namespace motley {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// Boundaries of one size and links of one speed, for which all_sets_probe guarantees the optimum.
Problem random_uniform_problem() {
  Problem problem = random_problem({.layers_max = 8, .machines_max = 4});
  for (LayerSketch& layer : problem.layers) {
    layer.output_floats = 20;
    layer.exact_bytes = 0;
  }
  for (MachineSketch& machine : problem.machines) machine.medium.clear();
  problem.links.clear();
  problem.options.codecs = {"none"};
  problem.options.replicas = false;
  return problem;
}

double least_with_memory_s(Problem problem, const StepShape& shape) {
  for (MachineSketch& machine : problem.machines) machine.memory_bytes = 1'000'000;
  return Oracle(problem, shape).best(0).single_slot_period_s;
}

RC_GTEST_PROP(PeriodSearch, FindsTheLeastPeriodOfAllPipelinesAndProvesIt, ()) {
  const Problem problem = random_uniform_problem();
  // GPipe has no round trips that limit the period.
  const StepShape shape{1, *rc::gen::inRange(1, 17), ScheduleKind::kGpipe};
  const auto cost = problem.cost();
  const SearchSpace space = search_space(problem.options, problem.model(), *cost);
  const StageTable table(*cost, shape);
  const double least_s = Oracle(problem, shape).best(0).single_slot_period_s;
  const PeriodSearchResult found = search_period(table, space, 4);
  RC_ASSERT(found.is_complete);
  RC_ASSERT(found.candidates.empty() == (least_s == kInfinite));
  if (found.candidates.empty()) return;
  RC_ASSERT(found.bounds.fluid_s <= least_s * (1 + 1e-9));
  RC_ASSERT(found.bounds.granularity_s <= least_s * (1 + 1e-9));
  RC_ASSERT(found.bounds.proven_s <= least_s * (1 + 1e-9));
  // The proof ignores the traffic on both sides of a stage, so that traffic can exceed the bound.
  constexpr double kMessageBytes = 20 * sizeof(float) + kFrameHeaderBytes;
  const double load_s = 2 * kMessageBytes / problem.link.bandwidth_bytes_per_s;
  if (load_s < least_s) {
    RC_ASSERT(found.period_s <= least_s * (1 + 1e-6));
    // The proof does not know which memory activation checkpointing saves.
    RC_ASSERT(found.bounds.proven_s >= least_with_memory_s(problem, shape) * (1 - 1e-6));
  }
}

// With both uses of a tied parameter the device has enough memory only with activation
// checkpointing; without the second use's value it would have enough anyway.
TEST(PeriodSearch, ProvesThePeriodOfADeviceThatBothUsesOfATiedParameterFill) {
  Problem problem;
  problem.layers = {{0.001, 100, 20, 1000}, {0.002, 50, 0, 1000}};
  problem.machines = {{1, 7200}};
  problem.tied = true;
  const StepShape shape{1, 2, ScheduleKind::kGpipe};
  const auto cost = problem.cost();
  const SearchSpace space = search_space(problem.options, problem.model(), *cost);
  const PeriodSearchResult found = search_period(StageTable(*cost, shape), space, 4);
  const double least_s = Oracle(problem, shape).best(0).single_slot_period_s;
  EXPECT_NEAR(least_s, 0.004, 1e-9);
  EXPECT_NEAR(found.bounds.proven_s, least_s, 1e-6 * least_s);
  ASSERT_FALSE(found.candidates.empty());
  EXPECT_TRUE(found.candidates.front().stages.front().recompute);
}

RC_GTEST_PROP(PeriodSearch, NeverClaimsMoreThanTheTruth, ()) {
  const Problem problem = random_pinned_problem({.layers_max = 8, .machines_max = 4});
  const StepShape shape{1, *rc::gen::inRange(1, 17),
                        *rc::gen::element(ScheduleKind::kGpipe, ScheduleKind::kOneFOneB),
                        *rc::gen::inRange(1, 4)};
  CostModel cost = *problem.cost();
  for (const auto& [machine, share] : problem.options.pins.memory_share) {
    cost.limit_memory(machine, share);
  }
  const SearchSpace space = search_space(problem.options, problem.model(), cost);
  const StageTable table(cost, shape);
  const auto truth = Oracle(problem, shape).best(0);
  const PeriodSearchResult found = search_period(table, space, 4);
  RC_ASSERT(found.bounds.proven_s <= truth.single_slot_period_s * (1 + 1e-9));
  for (const Candidate& candidate : found.candidates) {
    Candidate again = candidate;
    RC_ASSERT(StepEstimate(table, space).rate(again));
    RC_ASSERT(again.stages == candidate.stages && again.estimate_s == candidate.estimate_s);
    RC_ASSERT(candidate.estimate_s >= truth.step_s * (1 - 1e-9));
    RC_ASSERT(candidate.period_s >= truth.single_slot_period_s * (1 - 1e-9));
  }
}

// Machines of several speeds, `each` of every speed, and a transformer-like chain of layers.
Problem large_problem(int layers, const std::vector<double>& speeds, int each) {
  Problem problem;
  for (int l = 0; l < layers; ++l) {
    problem.layers.push_back({.work_s = l % 2 == 0 ? 1.0 : 2.0, .output_floats = 10});
  }
  problem.layers.back().work_s = 5;
  for (const double speed : speeds) {
    for (int i = 0; i < each; ++i) problem.machines.push_back({.speed = speed});
  }
  problem.link = {1e9, 1e-4};
  return problem;
}

double gap_of(const Problem& problem, bool* is_complete) {
  const auto cost = problem.cost();
  const StageTable table(*cost, {1, 512, ScheduleKind::kGpipe});
  const SearchSpace space = search_space(problem.options, problem.model(), *cost);
  const PeriodSearchResult found = search_period(table, space, 4);
  *is_complete = found.is_complete;
  return found.period_s / found.bounds.proven_s - 1;
}

TEST(PeriodSearch, ProvesTheOptimumOfTwelveDifferentMachines) {
  std::vector<double> speeds;
  for (int m = 0; m < 12; ++m) speeds.push_back(1 + 0.37 * m);
  bool is_complete = false;
  EXPECT_LT(gap_of(large_problem(60, speeds, 1), &is_complete), 1e-6);
  EXPECT_TRUE(is_complete);
}

TEST(PeriodSearch, ProvesTheOptimumOfManyMachinesOfAFewKinds) {
  bool is_complete = false;
  EXPECT_LT(gap_of(large_problem(100, {1, 2.5, 4}, 10), &is_complete), 1e-6);
  EXPECT_TRUE(is_complete);
}

TEST(PeriodSearch, StaysNearTheBoundWithManyDifferentMachines) {
  std::vector<double> speeds;
  for (int m = 0; m < 40; ++m) speeds.push_back(1 + 0.173 * m);
  bool is_complete = true;
  EXPECT_LT(gap_of(large_problem(150, speeds, 1), &is_complete), 0.1);
  EXPECT_FALSE(is_complete);
}

TEST(SlotClasses, GroupsMachinesThatAreAlikeInCostsAndLinks) {
  Problem problem = large_problem(8, {1, 2}, 3);
  problem.links.push_back({"m0", "m1", {1e3, 0}});  // now m0 and m1 differ from m2
  const auto cost = problem.cost();
  const SearchSpace space = search_space(problem.options, problem.model(), *cost);
  const std::vector<std::vector<int>> expected = {{0}, {1}, {2}, {3, 4, 5}};
  EXPECT_EQ(slot_classes(*cost, space), expected);
}

}  // namespace
}  // namespace motley
