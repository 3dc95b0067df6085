#include "cluster/planning/plan_rounding.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

namespace motley {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Plan plan_of(int micro_batch, const std::vector<int>& replicas) {
  Plan plan;
  plan.micro_batch = micro_batch;
  for (const int count : replicas) {
    ChunkPlan& chunk = plan.chunks.emplace_back();
    chunk.replicas.resize(static_cast<std::size_t>(count));
    chunk.codec = "fp16";
  }
  plan.gradient_codec = "int8";
  return plan;
}

TEST(PlanFingerprints, HoldWhatDecidesRounding) {
  const PlanFingerprint fingerprint = plan_fingerprint(plan_of(2, {1, 3, 1}));
  EXPECT_EQ(fingerprint.micro_batch, 2);
  EXPECT_THAT(fingerprint.codecs, ElementsAre("fp16", "fp16"));
  EXPECT_EQ(fingerprint.gradient_codec, "int8");
  EXPECT_THAT(fingerprint.replicas, ElementsAre(1, 3, 1));
}

Config config_that_leaves_all_open() {
  Config config;
  config.train.global_batch = 8;
  config.compression = {.activations = "auto", .gradients = "auto"};
  return config;
}

PlanOptions open_options() {
  PlanOptions options;
  options.global_batch = 8;
  options.codecs = {"none", "fp16"};
  options.gradient_codecs = {"none", "fp16"};
  options.coarser = {{{"int8"}, {"int8", "int4"}, 0.03}};
  return options;
}

TEST(PlanFingerprints, NarrowWhatIsLeftOpen) {
  const PlanOptions kept = options_like(plan_fingerprint(plan_of(2, {1, 3, 1})),
                                        config_that_leaves_all_open(), open_options());
  EXPECT_THAT(kept.codecs, ElementsAre("fp16"));
  EXPECT_THAT(kept.gradient_codecs, ElementsAre("int8"));
  EXPECT_TRUE(kept.replicas);
  EXPECT_THAT(kept.coarser.front().codecs, IsEmpty());
  EXPECT_THAT(kept.coarser.front().gradient_codecs, IsEmpty());
}

// A run of one machine whose other islands are back.
TEST(PlanFingerprints, LeaveIslandsOpenWhereRoundsAreAskedFor) {
  PlanOptions options = open_options();
  options.rounds = RoundOptions{.steps = 8};
  const PlanOptions kept =
      options_like(plan_fingerprint(plan_of(2, {1})), config_that_leaves_all_open(), options);
  EXPECT_TRUE(kept.replicas);
  ASSERT_TRUE(kept.rounds.has_value());
  EXPECT_EQ(kept.rounds->steps, 8);
}

// A run from an earlier version: `auto` selects again, and the planner gets only existing codecs.
TEST(PlanFingerprints, WithARemovedCodecLeaveItOpen) {
  Plan plan = plan_of(2, {1, 3, 1});
  plan.gradient_codec = "lowrank(4)|fp16";
  const PlanFingerprint fingerprint = plan_fingerprint(plan);
  const PlanOptions kept = options_like(fingerprint, config_that_leaves_all_open(), open_options());
  EXPECT_THAT(kept.gradient_codecs, ElementsAre("none", "fp16"));
  EXPECT_THAT(kept.coarser.front().gradient_codecs, ElementsAre("int8", "int4"));
  EXPECT_THAT(kept.codecs, ElementsAre("fp16"));
  EXPECT_TRUE(kept.replicas);
  EXPECT_EQ(plan_change(fingerprint, plan_fingerprint(plan_of(2, {1, 3, 1}))),
            "gradient all-reduces through int8 instead of lowrank(4)|fp16");
}

TEST(PlanFingerprints, OfAPipelineWithoutReplicasWantNone) {
  const PlanOptions kept = options_like(plan_fingerprint(plan_of(2, {1, 1})),
                                        config_that_leaves_all_open(), open_options());
  EXPECT_FALSE(kept.replicas);
  EXPECT_THAT(kept.gradient_codecs, ElementsAre("none", "fp16"));
}

TEST(PlanFingerprints, GiveWayToWhatTheConfigurationSays) {
  Config config = config_that_leaves_all_open();
  config.compression.activations = "none";
  PlanOptions options = open_options();
  options.codecs = {"none"};
  const PlanOptions kept = options_like(plan_fingerprint(plan_of(2, {1, 1})), config, options);
  EXPECT_THAT(kept.codecs, ElementsAre("none"));
}

TEST(PlanFingerprints, TellWhatRoundsOtherwise) {
  const PlanFingerprint saved = plan_fingerprint(plan_of(2, {1, 1}));
  EXPECT_FALSE(plan_change(saved, plan_fingerprint(plan_of(2, {1, 1, 1}))).has_value());
  EXPECT_FALSE(plan_change(saved, plan_fingerprint(plan_of(2, {1}))).has_value());
  EXPECT_EQ(plan_change(saved, plan_fingerprint(plan_of(4, {1, 1}))),
            "micro-batches of 4 samples instead of 2");
  EXPECT_EQ(plan_change(saved, plan_fingerprint(plan_of(2, {1, 2}))),
            "2 replicas instead of no replicas");
  Plan other = plan_of(2, {1, 1});
  other.chunks.front().codec = "int4";
  EXPECT_EQ(plan_change(saved, plan_fingerprint(other)),
            "activations through int4 instead of fp16");
  other = plan_of(2, {2, 1});
  other.gradient_codec = "none";
  EXPECT_EQ(plan_change(plan_fingerprint(plan_of(2, {2, 1})), plan_fingerprint(other)),
            "gradient all-reduces through none instead of int8");
}

// Four layers. Chunk i has layers[i] of them; shares[i] has a machine number and the micro-batches
// of each of its replicas.
Plan shared_plan(const std::vector<int>& layers,
                 const std::vector<std::vector<std::pair<int, int>>>& shares) {
  Plan plan;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    ChunkPlan& chunk = plan.chunks.emplace_back(ChunkPlan{.layer_count = layers[i]});
    for (const auto& [machine, micro_batches] : shares[i]) {
      chunk.replicas.push_back({Rank{static_cast<std::int32_t>(plan.ranks.size())}, micro_batches});
      plan.ranks.push_back({.machine = "m" + std::to_string(machine), .device = "cpu"});
    }
  }
  return plan;
}

TEST(SumsAlike, AreThoseOfAnyCutsWithoutReplicas) {
  EXPECT_TRUE(have_same_rounding(shared_plan({1, 3}, {{{0, 8}}, {{1, 8}}}),
                                 shared_plan({2, 1, 1}, {{{2, 8}}, {{0, 8}}, {{1, 8}}})));
}

TEST(SumsAlike, AreThoseOfTheSameSharesOnOtherMachines) {
  const Plan plan = shared_plan({1, 3}, {{{0, 5}, {1, 3}}, {{2, 8}}});
  EXPECT_TRUE(
      have_same_rounding(plan, shared_plan({1, 1, 2}, {{{2, 5}, {0, 3}}, {{0, 8}}, {{1, 8}}})));
  EXPECT_FALSE(have_same_rounding(plan, shared_plan({1, 3}, {{{0, 4}, {1, 4}}, {{2, 8}}})))
      << "parts";
  EXPECT_FALSE(have_same_rounding(plan, shared_plan({2, 2}, {{{0, 5}, {1, 3}}, {{2, 8}}})))
      << "layers";
  EXPECT_FALSE(have_same_rounding(plan, shared_plan({1, 3}, {{{0, 5}, {0, 3}}, {{2, 8}}})))
      << "machines";
}

}  // namespace
}  // namespace motley
