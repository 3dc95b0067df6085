#include "partitioner/search/round_plan.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include <gmock/gmock.h>

#include "base/json.h"
#include "partitioner/search/simulate_plan.h"
#include "tests/partitioner/planning_fixtures.h"

namespace motley {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kStep_s = 0.8;  // of the fast machine alone

// A model of 40 MB on machines of the given speeds relative to the first; a sample takes 25 ms
// there.
class RoundPlans : public testing::Test {
 protected:
  void make(const std::vector<double>& speeds, double bytes_per_s) {
    layers_ = std::vector<LayerSketch>(
        4, {.work_s = kStep_s / 32 / 4, .parameters = 2'500'000, .output_floats = 1'000'000});
    std::vector<MachineSketch> machines;
    for (const double speed : speeds) machines.push_back({.speed = speed});
    model_ = sketch_model(layers_);
    cluster_ = sketch_cluster(machines, {bytes_per_s, 1e-3});
    profile_ = sketch_profile(layers_, machines);
  }

  [[nodiscard]] Result<Planning> planned(std::int64_t steps,
                                         PlanOptions options = {},
                                         std::optional<std::int64_t> overlap_steps = {}) const {
    options.global_batch = 32;
    options.micro_batch = 1;
    options.process_state.moments_per_parameter = 2;
    options.rounds = RoundOptions{.steps = steps,
                                  .overlap_steps = overlap_steps,
                                  .train_steps = 2000,
                                  .synchronous_start = 0.1,
                                  .codec = "none"};
    return plan_in_full(model_, cluster_, profile_, options);
  }

  std::vector<LayerSketch> layers_;
  ModelSpec model_;
  Cluster cluster_;
  Profile profile_;
};

TEST_F(RoundPlans, DivideTheBatchBySpeed) {
  make({1, 1, 0.3}, 12.5e6);
  const auto planning = planned(30);
  ASSERT_TRUE(planning.ok()) << describe(planning.error());
  const Plan& plan = planning->plan;
  ASSERT_TRUE(plan.rounds.has_value());
  EXPECT_EQ(plan.rounds->islands.size(), 3U);
  EXPECT_EQ(plan.rounds->steps, 30);
  EXPECT_EQ(plan.rounds->start_steps, 210);  // seven rounds, about a tenth of 2000
  ASSERT_EQ(plan.chunks.size(), 1U);
  std::vector<int> shares;
  for (const Replica& replica : plan.chunks.front().replicas) {
    shares.push_back(replica.micro_batches);
  }
  EXPECT_THAT(shares, ElementsAre(14, 14, 4));
  // The division takes 0.35 s; the 40 MB of a round, sent to and fro by three machines, at most
  // 0.15 s more in each of 30 steps.
  EXPECT_GE(plan.predicted_step_s, 0.35);
  EXPECT_LE(plan.predicted_step_s, 0.5);
}

// Plans can be written and read, and mean the same.
TEST_F(RoundPlans, AreReadAsTheyAreWritten) {
  make({1, 0.5}, 12.5e6);
  const auto planning = planned(10);
  ASSERT_TRUE(planning.ok()) << describe(planning.error());
  const auto again = plan_from_json(plan_to_json(planning->plan), JsonSource("plan"));
  ASSERT_TRUE(again.ok()) << describe(again.error());
  EXPECT_EQ(plan_hash(*again), plan_hash(planning->plan));
}

TEST_F(RoundPlans, AreTakenWhereLinksAreSlow) {
  make({1, 1}, 12.5e6);
  const auto slow = planned(0);
  ASSERT_TRUE(slow.ok()) << describe(slow.error());
  ASSERT_TRUE(slow->plan.rounds.has_value());
  EXPECT_THAT(slow->plan.notes.back(), HasSubstr("2 islands train locally in rounds of"));
  ASSERT_TRUE(slow->single.has_value());
  EXPECT_GT(slow->single->predicted_step_s / slow->plan.predicted_step_s, 1.6);
  make({1, 1}, 12.5e9);
  const auto fast = planned(0);
  ASSERT_TRUE(fast.ok()) << describe(fast.error());
  EXPECT_FALSE(fast->plan.rounds.has_value());
}

// Synchronous steps take 3 s or more there.
TEST_F(RoundPlans, StartOnOneIslandWhereSynchronousStepsTakeLonger) {
  make({1, 1}, 12.5e6);
  const auto slow = planned(60);
  ASSERT_TRUE(slow.ok()) << describe(slow.error());
  EXPECT_EQ(slow->plan.rounds->start_island, 0);
  make({1, 1}, 12.5e9);
  const auto fast = planned(60);
  ASSERT_TRUE(fast.ok()) << describe(fast.error());
  EXPECT_EQ(fast->plan.rounds->start_island, -1);
}

// A pin that requires the slow machine excludes it from no island, and the fast one from no start.
TEST_F(RoundPlans, StartOnTheFastestIslandAlsoWithPins) {
  make({1, 1, 0.3}, 12.5e6);
  PlanOptions pinned;
  pinned.pins.always = {cluster_.machines[2].name};
  const auto open = planned(60);
  const auto with_slow = planned(60, pinned);
  ASSERT_TRUE(open.ok()) << describe(open.error());
  ASSERT_TRUE(with_slow.ok()) << describe(with_slow.error());
  EXPECT_EQ(open->plan.rounds->islands.size(), 3U);
  EXPECT_EQ(open->plan.rounds->start_island, 0);
  EXPECT_EQ(with_slow->plan.rounds->start_island, 0);
  EXPECT_EQ(with_slow->plan.predicted_step_s, open->plan.predicted_step_s);
}

TEST_F(RoundPlans, NeedTwoMachines) {
  make({1}, 12.5e6);
  const auto asked = planned(30);
  ASSERT_FALSE(asked.ok());
  EXPECT_EQ(asked.error().code, ErrorCode::kInfeasible);
  EXPECT_THAT(asked.error().what, HasSubstr("rounds of local training are not possible here"));
  const auto open = planned(0);
  ASSERT_TRUE(open.ok()) << describe(open.error());
  EXPECT_FALSE(open->plan.rounds.has_value());
}

// What the user fixes of the plan is not given up: rounds are refused, or not taken.
TEST_F(RoundPlans, DoNotOverruleStagesOrCuts) {
  make({1, 1}, 12.5e6);
  std::vector<PlanOptions> fixed(3);
  fixed[0].stages = 2;
  fixed[1].cuts = {2};
  fixed[2].replicas = false;
  for (const PlanOptions& options : fixed) {
    const auto asked = planned(30, options);
    ASSERT_FALSE(asked.ok());
    EXPECT_EQ(asked.error().code, ErrorCode::kConfig);
    EXPECT_EQ(asked.error().key, "parallel.rounds");
    const auto open = planned(0, options);
    ASSERT_TRUE(open.ok()) << describe(open.error());
    EXPECT_FALSE(open->plan.rounds.has_value());
  }
}

// A round of more steps never has a longer mean step, and the simulated step is the predicted one.
TEST_F(RoundPlans, AreFasterTheLongerARoundIs) {
  make({1, 0.6, 0.6}, 4e6);
  for (const std::int64_t divisor : {2, 1000}) {  // overlap by half, and none
    double before_s = std::numeric_limits<double>::infinity();
    for (const std::int64_t steps : {10, 30, 100, 300}) {
      const auto planning = planned(steps, {}, steps / divisor);
      ASSERT_TRUE(planning.ok()) << describe(planning.error());
      const double step_s = planning->plan.predicted_step_s;
      EXPECT_LE(step_s, before_s * (1 + 1e-9)) << steps;
      before_s = step_s;
      PlanOptions options;
      options.global_batch = 32;
      const auto simulated = simulate_plan(planning->plan, model_, cluster_, profile_, options);
      ASSERT_TRUE(simulated.ok()) << describe(simulated.error());
      EXPECT_NEAR(simulated->step.step_s, step_s, 1e-4 * step_s) << steps;
    }
  }
}

// The all-reduce of a round takes 3.2 s and more, as 8 of 30 steps of 0.4 s: half of a round hides
// it.
TEST_F(RoundPlans, OverlapWhereThatPays) {
  make({1, 1}, 12.5e6);
  const auto blocking = planned(30, {}, 0);
  const auto overlapping = planned(30, {}, 15);
  const auto open = planned(30);
  for (const auto* each : {&blocking, &overlapping, &open}) {
    ASSERT_TRUE(each->ok()) << describe(each->error());
  }
  EXPECT_EQ(blocking->plan.rounds->overlap_steps, 0);
  EXPECT_EQ(overlapping->plan.rounds->overlap_steps, 15);
  EXPECT_GT(open->plan.rounds->overlap_steps, 0);
  EXPECT_THAT(open->plan.notes.back(), HasSubstr("each sent during the first"));
  EXPECT_NEAR(overlapping->plan.predicted_step_s, 0.4, 0.01);
  EXPECT_GT(blocking->plan.predicted_step_s - overlapping->plan.predicted_step_s, 0.1);
  EXPECT_LE(open->plan.predicted_step_s, blocking->plan.predicted_step_s);
}

// An update that waits for an all-reduce would make the step of three machines 0.415 s; with rounds
// the slow machine updates its parameters while the others still compute.
TEST_F(RoundPlans, UseAMachineWithASlowUpdate) {
  make({1, 1, 0.15}, 12.5e6);
  profile_.devices[2].optimizer_s_per_parameter = 4e-9;
  const auto planning = planned(60, {}, 45);
  ASSERT_TRUE(planning.ok()) << describe(planning.error());
  EXPECT_EQ(planning->plan.rounds->islands.size(), 3U);
  EXPECT_LT(planning->plan.predicted_step_s, 0.39);  // 0.4 s on two
  ASSERT_FALSE(planning->alternatives.empty());
  for (const Plan& plan : planning->alternatives) {
    EXPECT_TRUE(plan.rounds.has_value());
    EXPECT_GE(plan.predicted_step_s, planning->plan.predicted_step_s);
  }
}

// The latency of a round's messages is hidden as their bytes are: a slow machine takes part.
TEST_F(RoundPlans, OverlapHidesLatency) {
  make({1, 1, 0.15}, 12.5e6);
  cluster_.network.latency_s = 0.02;
  PlanOptions without;
  without.pins.never = {cluster_.machines[2].name};
  const auto all = planned(60, {}, 45);
  const auto two = planned(60, without, 45);
  ASSERT_TRUE(all.ok() && two.ok());
  EXPECT_EQ(all->plan.rounds->islands.size(), 3U);
  EXPECT_LT(all->plan.predicted_step_s, two->plan.predicted_step_s);
}

// The offered parameters take memory.
TEST_F(RoundPlans, CountTheMemoryOfAnOverlap) {
  make({1, 1}, 12.5e6);
  const auto memory_of = [&](std::int64_t overlap_steps) {
    return planned(30, {}, overlap_steps)->plan.ranks.front().memory_bytes;
  };
  EXPECT_GE(memory_of(15) - memory_of(0), 40'000'000);
  EXPECT_LE(memory_of(15) - memory_of(0), 44'000'000);
}

}  // namespace
}  // namespace motley
