#include "training/momentum_correction/corrected_allreduces.h"

#include <cmath>

#include <gmock/gmock.h>

#include "tests/support/dealt_plan.h"

namespace motley {
namespace {

using testing::ElementsAre;

Config config_of() {
  Config config;
  config.model.layers = 2;
  config.model.width = 32;
  config.model.heads = 4;
  config.model.context = 16;
  config.model.vocab = 61;
  config.train.optimizer = "sgd";
  config.train.momentum = 0.8;
  config.train.clip = 2;
  config.train.global_batch = 4;
  return config;
}

ModelSpec model_of(const Config& config) {
  return describe_model(config.model).value();
}

// machines: [Rank]
Plan plan_of(const ModelSpec& model,
             std::vector<std::vector<Replica>> chunks,
             const std::vector<std::string>& machines) {
  Plan plan = dealt_plan(model, std::move(chunks));
  for (std::size_t rank = 0; rank < machines.size(); ++rank) {
    plan.ranks[rank] = {.machine = machines[rank], .device = "cpu"};
  }
  plan.micro_batches = 4;
  plan.gradient_codec = "topk(0.01)|fp16";
  return plan;
}

std::vector<Replica> shares(int first, int second) {
  return {{Rank{0}, first}, {Rank{1}, second}};
}

TEST(CorrectedAllreduces, AreThoseThatLeaveAMachine) {
  const Config config = config_of();
  const ModelSpec model = model_of(config);
  const Plan plan = plan_of(model, {{{Rank{0}, 2}, {Rank{1}, 2}}, {{Rank{2}, 2}, {Rank{3}, 2}}},
                            {"a", "b", "c", "c"});
  const CorrectedAllreduces sums =
      corrected_allreduces(config, plan, model, /*tied_across_ranks=*/true);
  EXPECT_EQ(sums.momentum, 0.8F);
  EXPECT_THAT(sums.chunks, ElementsAre(true, false));
  EXPECT_TRUE(sums.tied);
  EXPECT_THAT(sums.layers, ElementsAre(true, true, true, false, false, false));
  EXPECT_GT(sums.parameter_share, 0.4);
  EXPECT_LT(sums.parameter_share, 0.8);
  EXPECT_EQ(corrected_allreduces(config, plan_of(model, {shares(2, 2)}, {"a", "a"}), model, true)
                .momentum,
            0);
}

TEST(CorrectedAllreduces, NeedSgdTopkAndErrorFeedback) {
  const Config sgd = config_of();
  const ModelSpec model = model_of(sgd);
  const Plan plan = plan_of(model, {shares(2, 2)}, {"a", "b"});
  EXPECT_EQ(corrected_allreduces(sgd, plan, model, true).parameter_share, 1);
  Config other = sgd;
  other.train.optimizer = "adamw";
  EXPECT_EQ(corrected_allreduces(other, plan, model, true).momentum, 0);
  other = sgd;
  other.compression.error_feedback = false;
  EXPECT_EQ(corrected_allreduces(other, plan, model, true).momentum, 0);
  other = sgd;
  other.train.momentum = 0;
  EXPECT_EQ(corrected_allreduces(other, plan, model, true).momentum, 0);
  Plan dense = plan;
  dense.gradient_codec = "int4";
  EXPECT_EQ(corrected_allreduces(sgd, dense, model, true).momentum, 0);
  ModelSpec counting = model;
  counting.layers[1].parameters[0].statistic_momentum = 0.1;
  EXPECT_EQ(corrected_allreduces(sgd, plan, counting, true).momentum, 0);
}

// 2 × 4 samples × 16 tokens.
constexpr double kClipOfTokens = 128;

TEST(LocalClip, IsThatOfTheWholeByTheRootOfTheShare) {
  const Config config = config_of();
  const ModelSpec model = model_of(config);
  const auto clip_of = [&](const Plan& plan, Rank rank) {
    return local_clip(corrected_allreduces(config, plan, model, true), config, plan, model, rank);
  };
  const Plan alike = plan_of(model, {shares(2, 2)}, {"a", "b"});
  EXPECT_DOUBLE_EQ(clip_of(alike, Rank{0}), kClipOfTokens / std::sqrt(2));
  const Plan unlike = plan_of(model, {shares(3, 1)}, {"a", "b"});
  EXPECT_DOUBLE_EQ(clip_of(unlike, Rank{0}), kClipOfTokens * std::sqrt(0.75));
  EXPECT_DOUBLE_EQ(clip_of(unlike, Rank{1}), kClipOfTokens / 2);
}

// The squares of all ranks' bounds add up to the square of the total bound.
TEST(LocalClip, SharesTheWholeAmongStagesAndReplicas) {
  const Config config = config_of();
  const ModelSpec model = model_of(config);
  const Plan plan = plan_of(model, {{{Rank{0}, 3}, {Rank{1}, 1}}, {{Rank{2}, 2}, {Rank{3}, 2}}},
                            {"a", "b", "c", "d"});
  const CorrectedAllreduces sums = corrected_allreduces(config, plan, model, true);
  EXPECT_EQ(sums.parameter_share, 1);
  double squares = 0;
  for (Rank rank{0}; rank.value < 4; ++rank.value) {
    squares += std::pow(local_clip(sums, config, plan, model, rank), 2);
  }
  EXPECT_NEAR(squares, kClipOfTokens * kClipOfTokens, 1e-6);
}

}  // namespace
}  // namespace motley
