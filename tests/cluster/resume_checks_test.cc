#include "cluster/prepare/resume_checks.h"

#include <gmock/gmock.h>

namespace motley {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ResumeTest : public testing::Test {
 protected:
  ResumeTest() : model_(*describe_model(config_.model)) {
    saved_.step = 20;
    saved_.seed = config_.train.seed;
    saved_.model_hash = model_.hash();
    saved_.optimizer = config_.train.optimizer;
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

TEST_F(ResumeTest, AllowsAScheduleWithTheSameRatesSoFar) {
  Config before = config_;
  before.train.schedule = "wsd";
  Config config = before;
  config.train.steps = 2000;
  config.train.lr = 0.001;
  EXPECT_THAT(changes_of(before, config),
              ElementsAre("train.steps 1000 -> 2000", "train.lr 0.0003 -> 0.001"));
  EXPECT_THAT(changes_of(before, config, /*same_rates=*/true),
              ElementsAre("train.lr 0.0003 -> 0.001"));
}

TEST_F(ResumeTest, SaysWhyARunThatStoppedEarlyIsOver) {
  const EvaluationRecord record{BestEvaluation{10, 2.5}, 2.5, 3};
  TrainConfig train = config_.train;
  EXPECT_TRUE(check_not_stopped_early(record, 40, train).ok());
  train.early_stopping = 4;
  EXPECT_TRUE(check_not_stopped_early(record, 40, train).ok());
  train.early_stopping = 3;
  const auto refused = check_not_stopped_early(record, 40, train);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kConfig);
  EXPECT_EQ(refused.error().what, "the run has stopped early, after step 40");
  EXPECT_EQ(refused.error().cause,
            "3 evaluations in a row without a lower held-out loss (train.early_stopping = 3); "
            "best: held-out loss 2.5000 after step 10");
}

TEST_F(ResumeTest, ComparesOnlyLossesOfTheSameSamples) {
  Config config = config_;
  config.train.eval_every = 7;
  EXPECT_TRUE(has_same_evaluations(config_, config));
  config.train.eval_batches = 9;
  EXPECT_FALSE(has_same_evaluations(config_, config));
  config = config_;
  config.data.holdout = 0.2;
  EXPECT_FALSE(has_same_evaluations(config_, config));
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

}  // namespace
}  // namespace motley
