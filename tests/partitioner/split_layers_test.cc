#include "partitioner/period_search/split_layers.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/partitioner/planning_fixtures.h"

namespace motley {
namespace {

// Three stages of 2, 1 and 3 layers, with 8 micro-batches.
Candidate three_stages() {
  Candidate candidate;
  candidate.stages = {{.slots = {1}, .batch_split = {8}, .first_layer = 0, .codec = 1},
                      {.slots = {0}, .batch_split = {8}, .first_layer = 2, .codec = 2},
                      {.slots = {2}, .batch_split = {8}, .first_layer = 3}};
  return candidate;
}

TEST(SharedLayers, AreTheLastBeforeABoundaryOrTheFirstBehindIt) {
  const std::vector<Candidate> found = split_layers(three_stages(), 6, 3);
  ASSERT_EQ(found.size(), 4U);

  Candidate last = three_stages();
  last.stages.insert(last.stages.begin() + 1,
                     {.slots = {0, 1}, .batch_split = {3, 5}, .first_layer = 1, .codec = 1});
  EXPECT_EQ(found[0].stages, last.stages);

  Candidate whole_stage = three_stages();
  whole_stage.stages[1].slots = {0, 1};
  whole_stage.stages[1].batch_split = {5, 3};
  EXPECT_EQ(found[1].stages, whole_stage.stages);

  whole_stage.stages[1].slots = {0, 2};
  EXPECT_EQ(found[2].stages, whole_stage.stages);

  Candidate first = three_stages();
  first.stages[2].first_layer = 4;
  first.stages.insert(first.stages.begin() + 2,
                      {.slots = {0, 2}, .batch_split = {3, 5}, .first_layer = 3, .codec = 2});
  EXPECT_EQ(found[3].stages, first.stages);
}

TEST(SharedLayers, AreNotSharedOnceMore) {
  Candidate candidate = three_stages();
  candidate.stages[1].slots = {0, 1};
  candidate.stages[1].batch_split = {5, 3};
  EXPECT_TRUE(split_layers(candidate, 6, 1).empty());
  candidate = three_stages();
  candidate.stages.resize(1);
  EXPECT_TRUE(split_layers(candidate, 6, 1).empty());
}

TEST(LayersSharedOnBothSides, AreTakenFromOneAndGivenToTheOtherOrTakenFromBoth) {
  Candidate candidate = three_stages();
  candidate.stages[2].first_layer = 4;  // two layers in the middle
  const std::vector<Candidate> found = layers_split_on_both_sides(candidate, 6, 3, 2);
  ASSERT_EQ(found.size(), 3U);
  const auto shared = [&](int front_share, int back_share, int front_layer, int back_layer) {
    // Slot 0 is the middle one, between 1 and 2; its remaining layers are in between.
    std::vector<StageChoice> stages = {candidate.stages[0]};
    if (front_layer == 2) {
      stages.push_back({.slots = {0, 1},
                        .batch_split = {8 - front_share, front_share},
                        .first_layer = 2,
                        .codec = 1});
      stages.push_back({.slots = {0}, .batch_split = {8}, .first_layer = 3, .codec = 2});
    } else {
      stages.push_back({.slots = {0, 1},
                        .batch_split = {front_share, 8 - front_share},
                        .first_layer = 1,
                        .codec = 1});
      stages.push_back({.slots = {0}, .batch_split = {8}, .first_layer = 2, .codec = 2});
    }
    if (back_layer == 3) {
      stages.push_back({.slots = {0, 2},
                        .batch_split = {8 - back_share, back_share},
                        .first_layer = 3,
                        .codec = 2});
      stages.push_back({.slots = {2}, .batch_split = {8}, .first_layer = 4});
    } else {
      stages.push_back({.slots = {0, 2},
                        .batch_split = {back_share, 8 - back_share},
                        .first_layer = 4,
                        .codec = 2});
      stages.push_back({.slots = {2}, .batch_split = {8}, .first_layer = 5});
    }
    return stages;
  };
  EXPECT_EQ(found[0].stages, shared(3, 2, 1, 4));
  EXPECT_EQ(found[1].stages, shared(3, 2, 1, 3));
  EXPECT_EQ(found[2].stages, shared(2, 3, 2, 4));

  // A single layer can only be shared with one neighbour.
  EXPECT_EQ(layers_split_on_both_sides(three_stages(), 6, 3, 2).size(), 1U);
  candidate.stages.resize(2);
  EXPECT_TRUE(layers_split_on_both_sides(candidate, 6, 3, 2).empty());
}

TEST(ShiftedShares, LeaveEverybodyAMicroBatch) {
  Candidate candidate = three_stages();
  EXPECT_TRUE(shifted_splits(candidate).empty());
  candidate.stages[1].slots = {0, 1};
  candidate.stages[1].batch_split = {7, 1};
  const std::vector<Candidate> found = shifted_splits(candidate);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].stages[1].batch_split, (std::vector{6, 2}));
}

// Equal layers on equal machines. The first and the last are so large that replicas of the whole
// model would take longer to all-reduce.
Problem equal_layers(std::size_t layers, std::size_t machines, int global_batch) {
  Problem problem;
  problem.layers.assign(layers, {.work_s = 3, .output_floats = 10, .queued_bytes = 1000});
  problem.layers.front().parameters = problem.layers.back().parameters = 2'000'000'000;
  problem.machines.resize(machines);
  problem.link = {1e9, 0};
  problem.options.global_batch = global_batch;
  problem.options.micro_batch = 1;
  return problem;
}

// Three layers on two machines: 2 and 1, or 1½ each.
TEST(SharingPlanner, SharesALayerWhereWholeOnesFitBadly) {
  Problem problem = equal_layers(3, 2, 16);
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

// Five layers on three machines: 2, 2 and 1, or 1⅔ each. A layer shared at one boundary
// leaves one machine with two.
TEST(SharingPlanner, SharesALayerOnEachSideOfAMachineWhereOneAloneSavesNothing) {
  const Problem problem = equal_layers(5, 3, 48);
  const auto plan = problem.plan();
  ASSERT_TRUE(plan.ok()) << describe(plan.error());
  const auto shared = std::ranges::count_if(
      plan->chunks, [](const ChunkPlan& chunk) { return chunk.replicas.size() == 2; });
  EXPECT_EQ(shared, 2);
  EXPECT_LT(plan->predicted_step_s, 48 * 3 * 1.85);
}

}  // namespace
}  // namespace motley
