// The user's requirements on a plan: pins, a number of stages, an end of the search.
#include <algorithm>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "partitioner/search/planner.h"
#include "tests/partitioner/planning_fixtures.h"

namespace motley {
namespace {

// A desktop, a laptop on a slow link and a box; the first and the last layer share a large
// parameter.
Problem problem_with_a_laptop() {
  Problem problem;
  problem.layers.push_back({.work_s = 0.001,
                            .parameters = 5'000'000,
                            .output_floats = 100'000,
                            .saved_bytes = 10,
                            .queued_bytes = 10});
  for (int l = 0; l < 8; ++l) {
    problem.layers.push_back({.work_s = 0.12,
                              .parameters = 200'000,
                              .output_floats = 100'000,
                              .saved_bytes = 10,
                              .queued_bytes = 10});
  }
  problem.layers.push_back({.work_s = 0.5, .parameters = 0, .saved_bytes = 10, .queued_bytes = 10});
  problem.machines = {{.speed = 12}, {.speed = 0.6}, {.speed = 2}};
  problem.link = {125e6, 1e-4};
  for (const char* other : {"m0", "m2"}) {
    problem.links.push_back({"m1", other, {1e7, 1e-4}});
    problem.links.push_back({other, "m1", {1e7, 1e-4}});
  }
  problem.tied = true;
  problem.options.global_batch = 64;
  problem.options.micro_batch = 1;
  return problem;
}

bool holds(const Plan& plan, const std::string& machine, int layer) {
  return std::ranges::any_of(plan.chunks, [&](const ChunkPlan& chunk) {
    return chunk.first_layer <= layer && layer < chunk.first_layer + chunk.layer_count &&
           std::ranges::any_of(chunk.replicas, [&](const Replica& replica) {
             return plan.ranks[replica.rank.index()].machine == machine;
           });
  });
}

// The slow machine only gets one micro-batch of a small layer, whose all-reduce takes 0.16 s.
TEST(Planner, ObeysAPinThatAMachineIsUsedAsCheaplyAsItCan) {
  Problem problem = problem_with_a_laptop();
  const double free_s = problem.plan()->predicted_step_s;
  problem.options.pins.always = {"m1"};
  const auto plan = problem.plan();
  ASSERT_TRUE(plan.ok());
  EXPECT_TRUE(std::ranges::any_of(plan->ranks, [](const auto& r) { return r.machine == "m1"; }));
  EXPECT_LT(plan->predicted_step_s, free_s + 0.5);
}

// The layer's machine holds it; others may have replicas, and folded plans keep it there.
TEST(Planner, ObeysAPinOfALayerAsCheaplyAsItCan) {
  Problem problem = problem_with_a_laptop();
  const double free_s = problem.plan()->predicted_step_s;
  for (const int layer : {0, 4, 9}) {
    problem.options.pins.layers = {{std::to_string(layer), "m1"}};
    const auto plan = problem.plan();
    ASSERT_TRUE(plan.ok());
    EXPECT_TRUE(holds(*plan, "m1", layer)) << layer;
    // A tied parameter has to be reduced over the slow link.
    EXPECT_LT(plan->predicted_step_s, free_s + (layer == 4 ? 0.5 : 6)) << layer;
  }
}

TEST(Planner, NamesThePinsThatNoPlanObeys) {
  Problem problem = problem_with_a_laptop();
  problem.options.pins.always = {"m1"};
  problem.options.pins.memory_share = {{"m1", 1e-12}};
  const auto plan = problem.plan();
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().what, "no plan satisfies the pins");
  EXPECT_THAT(plan.error().remedy, testing::HasSubstr("'always m1', 'm1 at most "));
}

class EndsAtOnce : public SearchObserver {
 public:
  bool may_continue(double) override { return false; }
};

TEST(Planner, HasAPlanWhenTheSearchIsEnded) {
  Problem problem = problem_with_a_laptop();
  EndsAtOnce watch;
  const auto plan_with = [&](SearchObserver* watching) {
    problem.options.watch = watching;
    return *plan_in_full(problem.model(), problem.cluster(), problem.profile(), problem.options);
  };
  const Planning whole = plan_with(nullptr);
  const Planning ended = plan_with(&watch);
  EXPECT_TRUE(whole.is_complete);
  EXPECT_FALSE(ended.is_complete);
  EXPECT_FALSE(ended.bounds.proven);
  EXPECT_GE(ended.plan.predicted_step_s, whole.plan.predicted_step_s);
}

// Few layers, and a pin for each machine: satisfying one pin must not violate another.
TEST(Planner, EndsWhereAllMachinesArePinned) {
  for (const int layers : {3, 4, 6}) {
    for (const double work_s : {1e-4, 1e-2}) {
      Problem problem;
      problem.layers.assign(static_cast<std::size_t>(layers),
                            {.work_s = work_s, .output_floats = 1000});
      for (int m = 0; m < 3; ++m) problem.machines.push_back({.speed = 1 + 0.01 * m});
      problem.link = {1e8, 2e-4};
      problem.options.pins.always = {"m0", "m1", "m2"};
      const auto plan = problem.plan();
      ASSERT_TRUE(plan.ok()) << describe(plan.error());
      std::set<std::string> used;
      for (const RankPlan& rank : plan->ranks) used.insert(rank.machine);
      EXPECT_EQ(used.size(), 3U) << layers << " layers of " << work_s << " s";
    }
  }
}

// More machines than the exact search accepts, all different, with fast links.
Problem nine_machines() {
  Problem problem;
  problem.layers.assign(24, {.work_s = 0.1, .output_floats = 100});
  for (int m = 0; m < 9; ++m) problem.machines.push_back({.speed = 1 + 0.3 * m});
  problem.link = {1e6, 1e-4};
  return problem;
}

TEST(Planner, HasAsManyStagesAsAreAskedFor) {
  Problem problem = nine_machines();
  for (int stages = 1; stages <= 9; ++stages) {
    problem.options.stages = stages;
    const auto plan = problem.plan();
    ASSERT_TRUE(plan.ok()) << stages << ": " << describe(plan.error());
    EXPECT_EQ(plan->chunks.size(), static_cast<std::size_t>(stages));
  }
}

// Stages with several machines are found among six machines, and not lost with one more.
TEST(Planner, IsNotSlowerWithOneMachineMore) {
  for (const int layers : {2, 3, 4, 6}) {
    for (const std::int64_t floats : {1000, 10'000, 30'000}) {
      Problem problem;
      problem.layers.assign(static_cast<std::size_t>(layers),
                            {.work_s = 0.1, .parameters = floats, .output_floats = floats / 10});
      for (const double speed : {4.0, 2.0, 2.0, 1.0, 1.0, 0.5}) {
        problem.machines.push_back({.speed = speed});
      }
      problem.link = {1e6, 1e-4};
      problem.options.micro_batch = 4;
      const auto six = problem.plan();
      ASSERT_TRUE(six.ok()) << describe(six.error());
      problem.machines.push_back({.speed = 0.01});
      const auto seven = problem.plan();
      ASSERT_TRUE(seven.ok()) << describe(seven.error());
      EXPECT_LE(seven->predicted_step_s, six->predicted_step_s * 1.01) << layers << " " << floats;
    }
  }
}

// The exact search would take minutes.
TEST(Planner, EndsForThousandsOfLayersOnFewMachines) {
  Problem problem;
  problem.layers.assign(3000, {.work_s = 0.001, .parameters = 100, .output_floats = 100});
  problem.machines = {{.speed = 1}, {.speed = 2}, {.speed = 3}};
  problem.link = {1e9, 1e-5};
  const auto plan = problem.plan();
  ASSERT_TRUE(plan.ok()) << describe(plan.error());
  EXPECT_LT(plan->predicted_step_s, 1.1 * 32 * 3000 * 0.001 / 6);
}

// With fewer layers than machines the search alone finds no plan that uses it.
TEST(Planner, UsesAPinnedMachineOfManyHoweverSlow) {
  Problem problem = nine_machines();
  problem.layers.resize(4);
  problem.machines[0].speed = 0.05;
  const auto free = problem.plan();
  ASSERT_TRUE(free.ok()) << describe(free.error());
  problem.options.pins.always = {"m0"};
  const auto plan = problem.plan();
  ASSERT_TRUE(plan.ok()) << describe(plan.error());
  EXPECT_TRUE(std::ranges::any_of(plan->ranks, [](const auto& r) { return r.machine == "m0"; }));
  EXPECT_GE(plan->predicted_step_s, free->predicted_step_s);
}

// The slowest machine would be selected last.
TEST(Planner, HasAsManyStagesAsAreAskedForWithAPinnedMachine) {
  Problem problem = nine_machines();
  problem.options.pins.always = {"m0"};
  for (int stages = 7; stages <= 8; ++stages) {
    problem.options.stages = stages;
    const auto plan = problem.plan();
    ASSERT_TRUE(plan.ok()) << stages << ": " << describe(plan.error());
    EXPECT_EQ(plan->chunks.size(), static_cast<std::size_t>(stages));
    EXPECT_TRUE(std::ranges::any_of(plan->ranks, [](const auto& r) { return r.machine == "m0"; }));
  }
}

}  // namespace
}  // namespace motley
