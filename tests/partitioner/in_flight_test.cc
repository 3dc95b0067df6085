// The number of micro-batches in flight per stage of a candidate, for stages with replicas.
#include <numeric>

#include "partitioner/cost/step_estimate.h"
#include "partitioner/search/plan_trial.h"
#include "tests/partitioner/planning_fixtures.h"
#include "tests/support/property.h"

namespace motley {
namespace {

// Stages of one layer each, on `replicas` slots each.
Candidate candidate_of(const std::vector<int>& replicas) {
  Candidate candidate;
  int slot = 0;
  for (std::size_t i = 0; i < replicas.size(); ++i) {
    StageChoice& stage = candidate.stages.emplace_back();
    stage.first_layer = static_cast<int>(i);
    for (int k = 0; k < replicas[i]; ++k) stage.slots.push_back(slot++);
  }
  return candidate;
}

RC_GTEST_PROP(InFlight, OfSingleSlotsGrowsByTheWarmUpFromStageToStage, ()) {
  const StepShape shape{1, *rc::gen::inRange(1, 30),
                        *rc::gen::element(ScheduleKind::kGpipe, ScheduleKind::kOneFOneB),
                        *rc::gen::inRange(1, 4)};
  const int stages = *rc::gen::inRange(1, 9);
  const Candidate candidate = candidate_of(std::vector(static_cast<std::size_t>(stages), 1));
  std::vector<int> expected;
  for (int depth = stages; depth >= 1; --depth) expected.push_back(shape.in_flight(depth));
  RC_ASSERT(in_flight_of(candidate.stages, shape) == expected);
}

TEST(InFlight, IsOfEachReplicaAndOfAllBehindIt) {
  EXPECT_EQ(in_flight_of(candidate_of({2, 1, 4}).stages, {1, 32}), (std::vector{7, 5, 1}));
  EXPECT_EQ(in_flight_of(candidate_of({2, 1, 4}).stages, {1, 32, ScheduleKind::kOneFOneB, 3}),
            (std::vector{13, 7, 1}));
  EXPECT_EQ(in_flight_of(candidate_of({2, 1, 4}).stages, {1, 6}), (std::vector{6, 5, 1}));
  EXPECT_EQ(in_flight_of(candidate_of({2, 1}).stages, {1, 32, ScheduleKind::kGpipe}),
            (std::vector{32, 32}));
}

// The step time with stages whose n slots have 1/n of the speed, so that each stage takes 3 s per
// micro-batch.
double balanced_step_s(const std::vector<int>& replicas, StepShape shape) {
  Problem problem;
  problem.layers.assign(replicas.size(), {.work_s = 3, .parameters = 0, .queued_bytes = 1});
  for (const int count : replicas) {
    for (int k = 0; k < count; ++k) problem.machines.push_back({.speed = 1.0 / count});
  }
  const auto cost = problem.cost();
  const ModelSpec model = problem.model();
  const SearchSpace space = search_space(problem.options, model, *cost);
  const StageTable table(*cost, shape);
  Candidate candidate = candidate_of(replicas);
  EXPECT_TRUE(StepEstimate(table, space).rate(candidate));
  const auto trial = try_candidate(model, *cost, space, shape, candidate);
  EXPECT_TRUE(trial.ok());
  return trial->plan.predicted_step_s;
}

// Filling and draining take each stage's time once per replica, and no slot is idle in between.
// With one window for all replicas of a stage together the step took 2 to 4 times as long.
TEST(InFlight, KeepsAllReplicasBusy) {
  for (const ScheduleKind schedule : {ScheduleKind::kOneFOneB, ScheduleKind::kSplit}) {
    for (const auto& replicas : {std::vector{4, 4}, std::vector{4, 4, 4}, std::vector{1, 4},
                                 std::vector{4, 1}, std::vector{2, 1, 4}}) {
      const StepShape shape{.micro_batch = 1, .micro_batches = 48, .schedule = schedule};
      const double filling_s = 3.0 * std::accumulate(replicas.begin(), replicas.end(), 0);
      EXPECT_LE(balanced_step_s(replicas, shape), 3.0 * 48 + filling_s)
          << ::testing::PrintToString(replicas) << " " << schedule_facts(schedule).name;
    }
  }
}

// If the numbers of replicas alternate, forwards and backwards of the neighbours arrive in bursts,
// which the next larger warm-up hides.
TEST(InFlight, HidesBurstsWithALongerWarmUp) {
  const double filling_s = 3.0 * (3 + 1 + 2 + 1);
  const StepShape shape{.micro_batch = 1, .micro_batches = 48, .warm_up = 2};
  EXPECT_LE(balanced_step_s({3, 1, 2, 1}, shape), 3.0 * 48 + filling_s);
}

// Only one layer fits on each device: two stages, best with two replicas each.
TEST(InFlight, GivesStagesWithReplicasAWindowForEach) {
  Problem problem;
  problem.layers.assign(2, {.work_s = 3, .output_floats = 10, .saved_bytes = 1000});
  problem.machines.assign(4, {.memory_bytes = 24'000});
  problem.options.global_batch = 32;
  problem.options.micro_batch = 1;
  const auto plan = problem.plan();
  ASSERT_TRUE(plan.ok()) << describe(plan.error());
  ASSERT_EQ(plan->chunk_count(), 2);
  EXPECT_EQ(plan->chunks[0].replicas.size(), 2U);
  EXPECT_EQ(plan->chunks[1].replicas.size(), 2U);
  EXPECT_EQ(plan->chunks[0].in_flight, 4);
  EXPECT_EQ(plan->chunks[1].in_flight, 1);
  EXPECT_NEAR(plan->predicted_step_s, (32 / 2 + 1) * 3, 0.01);
}

}  // namespace
}  // namespace motley
