#include "cluster/run/resume.h"

#include <gmock/gmock.h>

namespace motley {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kHash(32, 'a');

class ResumeTest : public testing::Test {
 protected:
  ResumeTest() : model_(*describe_model(config_.model)) {
    config_.data.kind = "text";
    saved_.step = 20;
    saved_.seed = config_.train.seed;
    saved_.model_hash = model_.hash();
    saved_.optimizer = config_.train.optimizer;
    saved_.data = DataFingerprint{"text", 1000, kHash, config_.data.holdout};
  }

  [[nodiscard]] Result<void> check() const {
    return check_resume(saved_, "step-000020", config_, model_);
  }

  Config config_;
  ModelSpec model_;
  CheckpointState saved_;
};

TEST_F(ResumeTest, GoesOnUnderTheSameConfiguration) {
  EXPECT_TRUE(check().ok());
}

TEST_F(ResumeTest, RefusesWhatHoldsNoStateToGoOnFrom) {
  Config config = config_;
  config.train.optimizer = "sgd";
  EXPECT_FALSE(check_resume(saved_, "step-000020", config, model_).ok());
  config = config_;
  config.model.layers += 1;
  EXPECT_FALSE(check_resume(saved_, "step-000020", config, *describe_model(config.model)).ok());
}

TEST_F(ResumeTest, SaysWhatAMeanIsGoodFor) {
  saved_.optimizer = kNoOptimizer;
  const auto checked = check();
  ASSERT_FALSE(checked.ok());
  EXPECT_EQ(checked.error().code, ErrorCode::kConfig);
  EXPECT_THAT(describe(checked.error()), HasSubstr("model.init_from=step-000020"));
}

TEST_F(ResumeTest, KeepsTheMicroBatchThatTheRunChose) {
  Config before = config_;
  before.train.micro_batch = 4;
  EXPECT_EQ(with_choices_of(before, config_).train.micro_batch, 4);
  Config chosen = config_;
  chosen.train.micro_batch = 8;
  EXPECT_EQ(with_choices_of(before, chosen).train.micro_batch, 8);
  Config odd = config_;
  odd.train.global_batch = 9;  // not a multiple of the micro-batch of 4
  EXPECT_EQ(with_choices_of(before, odd).train.micro_batch, 0);
  EXPECT_THAT(changes_of(before, odd), ElementsAre("train.global_batch 32 -> 9"));
}

TEST_F(ResumeTest, KeepsTheThreadsThatTheRunChose) {
  Config before = config_;
  before.run.threads = 3;
  EXPECT_EQ(with_choices_of(before, config_).run.threads, 3);
  Plan plan;
  plan.ranks.resize(2);
  plan.ranks[0].machine = "m0";
  plan.ranks[0].threads = 2;
  plan.ranks[1].machine = "m1";
  plan.ranks[1].threads = 5;
  Cluster cluster;
  cluster.machines.resize(3);
  cluster.machines[0].name = "m0";
  cluster.machines[1].name = "m1";
  cluster.machines[1].threads = 1;
  cluster.machines[2].name = "m2";
  const Cluster kept = with_threads_of(plan, cluster);
  EXPECT_EQ(kept.machines[0].threads, 2);
  EXPECT_EQ(kept.machines[1].threads, 1);
  EXPECT_EQ(kept.machines[2].threads, 0);
}

TEST_F(ResumeTest, ListsWhatChangesTheNumbers) {
  EXPECT_TRUE(refuse_changes(changes_of(config_, config_)).ok());
  Config config = config_;
  config.train.seed = 2;
  config.data.holdout = 0.25;
  config.train.lr = 0.001;
  const Result<void> refused = refuse_changes(changes_of(config_, config));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kConfig);
  EXPECT_THAT(refused.error().what,
              HasSubstr("data.holdout 0.1 -> 0.25, train.lr 0.0003 -> 0.001, train.seed 1 -> 2"));
  EXPECT_THAT(refused.error().remedy, HasSubstr("--allow-changes"));
  config.data.changed = "accept";
  EXPECT_THAT(changes_of(config_, config), ElementsAre("train.lr 0.0003 -> 0.001"));
}

// The codec of a run from an earlier version must be replaced, which needs one confirmation.
TEST_F(ResumeTest, ReplacesARemovedCodecAsAnyOther) {
  Config before = config_;
  before.compression.gradients = "lowrank(4)|fp16";
  Config config = config_;
  config.compression.gradients = "int8";
  EXPECT_TRUE(check().ok());
  const auto changes = changes_of(before, config);
  EXPECT_THAT(changes, ElementsAre("compression.gradients \"lowrank(4)|fp16\" -> \"int8\""));
  EXPECT_THAT(refuse_changes(changes).error().remedy, HasSubstr("--allow-changes"));
}

TEST_F(ResumeTest, RefusesOtherData) {
  const DataIdentity same{1000, kHash};
  const DataIdentity longer{1001, kHash};
  const DataIdentity other{1000, std::string(32, 'b')};
  EXPECT_TRUE(check_same_data(*saved_.data, same, config_.data).ok());
  for (const DataIdentity& found : {longer, other}) {
    const Result<void> refused = check_same_data(*saved_.data, found, config_.data);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::kData);
    EXPECT_THAT(refused.error().remedy, HasSubstr("--allow-changes"));
  }
  config_.data.changed = "accept";
  EXPECT_TRUE(check_same_data(*saved_.data, other, config_.data).ok());
}

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
  EXPECT_TRUE(rounds_alike(shared_plan({1, 3}, {{{0, 8}}, {{1, 8}}}),
                           shared_plan({2, 1, 1}, {{{2, 8}}, {{0, 8}}, {{1, 8}}})));
}

TEST(SumsAlike, AreThoseOfTheSameSharesOnOtherMachines) {
  const Plan plan = shared_plan({1, 3}, {{{0, 5}, {1, 3}}, {{2, 8}}});
  EXPECT_TRUE(rounds_alike(plan, shared_plan({1, 1, 2}, {{{2, 5}, {0, 3}}, {{0, 8}}, {{1, 8}}})));
  EXPECT_FALSE(rounds_alike(plan, shared_plan({1, 3}, {{{0, 4}, {1, 4}}, {{2, 8}}}))) << "parts";
  EXPECT_FALSE(rounds_alike(plan, shared_plan({2, 2}, {{{0, 5}, {1, 3}}, {{2, 8}}}))) << "layers";
  EXPECT_FALSE(rounds_alike(plan, shared_plan({1, 3}, {{{0, 5}, {0, 3}}, {{2, 8}}}))) << "machines";
}

}  // namespace
}  // namespace motley
