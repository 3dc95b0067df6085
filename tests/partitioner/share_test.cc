#include "partitioner/pipelines/share.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/partitioner/planning_fixtures.h"

namespace motley {
namespace {

// Three stages of 2, 1 and 3 layers, of 8 micro-batches.
Candidate three_stages() {
  Candidate candidate;
  candidate.stages = {{.slots = {1}, .shares = {8}, .first_layer = 0, .codec = 1},
                      {.slots = {0}, .shares = {8}, .first_layer = 2, .codec = 2},
                      {.slots = {2}, .shares = {8}, .first_layer = 3}};
  return candidate;
}

TEST(SharedLayers, AreTheLastBeforeABoundaryOrTheFirstBehindIt) {
  const std::vector<Candidate> found = shared_layers(three_stages(), 6, 3);
  ASSERT_EQ(found.size(), 4U);

  Candidate last = three_stages();
  last.stages.insert(last.stages.begin() + 1,
                     {.slots = {0, 1}, .shares = {3, 5}, .first_layer = 1, .codec = 1});
  EXPECT_EQ(found[0].stages, last.stages);

  Candidate whole_stage = three_stages();
  whole_stage.stages[1].slots = {0, 1};
  whole_stage.stages[1].shares = {5, 3};
  EXPECT_EQ(found[1].stages, whole_stage.stages);

  whole_stage.stages[1].slots = {0, 2};
  EXPECT_EQ(found[2].stages, whole_stage.stages);

  Candidate first = three_stages();
  first.stages[2].first_layer = 4;
  first.stages.insert(first.stages.begin() + 2,
                      {.slots = {0, 2}, .shares = {3, 5}, .first_layer = 3, .codec = 2});
  EXPECT_EQ(found[3].stages, first.stages);
}

TEST(SharedLayers, AreNotSharedOnceMore) {
  Candidate candidate = three_stages();
  candidate.stages[1].slots = {0, 1};
  candidate.stages[1].shares = {5, 3};
  EXPECT_TRUE(shared_layers(candidate, 6, 1).empty());
  candidate = three_stages();
  candidate.stages.resize(1);
  EXPECT_TRUE(shared_layers(candidate, 6, 1).empty());
}

TEST(ShiftedShares, LeaveEverybodyAMicroBatch) {
  Candidate candidate = three_stages();
  EXPECT_TRUE(shifted_shares(candidate).empty());
  candidate.stages[1].slots = {0, 1};
  candidate.stages[1].shares = {7, 1};
  const std::vector<Candidate> found = shifted_shares(candidate);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].stages[1].shares, (std::vector{6, 2}));
}

// Three equal layers on two equal machines: 2 and 1, or 1½ each.
TEST(MakePlan, SharesALayerWhereWholeOnesFitBadly) {
  Problem problem;
  problem.layers.assign(3, {.work_s = 3, .output_floats = 10, .queued_bytes = 1000});
  problem.machines.resize(2);
  problem.link = {1e9, 0};
  problem.options.global_batch = 16;
  problem.options.micro_batch = 1;
  // So large that the whole model on both would take longer to sum.
  problem.layers[0].parameters = problem.layers[2].parameters = 2'000'000'000;
  const auto plan = problem.plan();
  ASSERT_TRUE(plan.ok()) << describe(plan.error());
  const auto shared = std::ranges::find_if(
      plan->chunks, [](const ChunkPlan& chunk) { return chunk.replicas.size() == 2; });
  ASSERT_NE(shared, plan->chunks.end());
  EXPECT_EQ(shared->first_layer, 1);
  EXPECT_EQ(shared->layer_count, 1);
  EXPECT_LT(plan->predicted_step_s, 16 * 3 * 1.75);

  problem.options.replicas = false;
  EXPECT_GE(problem.plan()->predicted_step_s, 16 * 3 * 2);
}

}  // namespace
}  // namespace motley
