#include "cluster/planning/planning_options.h"

#include <string>
#include <tuple>

#include <gmock/gmock.h>

#include "training/optimizer/optimizer.h"

namespace motley {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Result<PlanOptions> options_with(const std::string& activations, const std::string& gradients) {
  Config config;
  config.compression.activations = activations;
  config.compression.gradients = gradients;
  return plan_options(config, *describe_model(config.model), 0);
}

TEST(PlanOptions, TakeAnyChainForGradients) {
  for (const char* chain : {"none", "int4", "topk(0.01)|fp16"}) {
    const auto options = options_with("fp16", chain);
    ASSERT_TRUE(options.ok()) << describe(options.error());
    EXPECT_THAT(options->codecs, ElementsAre("fp16"));
    EXPECT_THAT(options->gradient_codecs, ElementsAre(chain));
  }
}

TEST(PlanOptions, RefuseForActivationsWhatNeedsFeedback) {
  for (const char* chain : {"topk(0.01)", "topk(0.1)|int8|zstd(1)"}) {
    const auto options = options_with(chain, "none");
    ASSERT_FALSE(options.ok());
    EXPECT_EQ(options.error().code, ErrorCode::kConfig);
    EXPECT_THAT(options.error().what, HasSubstr(chain));
    EXPECT_THAT(options.error().remedy, HasSubstr("fp16"));
  }
}

TEST(PlanOptions, RefuseACodecThatWasRemoved) {
  for (const auto& [activations, gradients, key] :
       {std::tuple("none", "lowrank(4)|fp16", "compression.gradients"),
        {"lowrank(4)|fp16", "none", "compression.activations"}}) {
    const auto options = options_with(activations, gradients);
    ASSERT_FALSE(options.ok());
    EXPECT_EQ(options.error().code, ErrorCode::kConfig);
    EXPECT_EQ(options.error().key, key);
    EXPECT_THAT(options.error().cause, HasSubstr("was removed"));
    EXPECT_THAT(options.error().remedy, HasSubstr("use int8 or int4"));
  }
}

Result<PlanOptions> auto_options(bool error_feedback) {
  Config config;
  config.compression = {.activations = "auto", .gradients = "auto"};
  config.compression.error_feedback = error_feedback;
  return plan_options(config, *describe_model(config.model), 0);
}

// docs/decisions/0019: int4 activations increase the loss, int4 gradients with error feedback do
// not.
TEST(PlanOptions, AllowAutoMoreRoundingForMoreGain) {
  const auto options = auto_options(/*error_feedback=*/true);
  ASSERT_TRUE(options.ok()) << describe(options.error());
  EXPECT_THAT(options->codecs, ElementsAre("none", "fp16"));
  ASSERT_EQ(options->coarser.size(), 2U);
  const CoarserCodecs& cheap = options->coarser[0];
  const CoarserCodecs& dear = options->coarser[1];
  EXPECT_THAT(cheap.codecs, ElementsAre("int8"));
  EXPECT_THAT(cheap.gradient_codecs, ElementsAre("int8", "int4"));
  EXPECT_THAT(dear.codecs, ElementsAre("int4"));
  EXPECT_THAT(dear.gradient_codecs, IsEmpty());
  EXPECT_GT(dear.least_gain, cheap.least_gain);
}

TEST(PlanOptions, LeaveSumsWithoutErrorFeedbackAtInt8) {
  const auto options = auto_options(/*error_feedback=*/false);
  ASSERT_TRUE(options.ok()) << describe(options.error());
  EXPECT_THAT(options->coarser.front().gradient_codecs, ElementsAre("int8"));
}

TEST(PlanOptions, RoundNoMoreThanIsAskedFor) {
  const auto options = options_with("fp16", "none");
  ASSERT_TRUE(options.ok()) << describe(options.error());
  for (const CoarserCodecs& coarser : options->coarser) {
    EXPECT_THAT(coarser.codecs, IsEmpty());
    EXPECT_THAT(coarser.gradient_codecs, IsEmpty());
  }
}

TEST(PlanOptions, CountTheMomentsThatTheOptimizerKeeps) {
  for (const char* optimizer : {"adamw", "sgd"}) {
    Config config;
    config.train.optimizer = optimizer;
    const auto options = plan_options(config, *describe_model(config.model), 0);
    ASSERT_TRUE(options.ok()) << describe(options.error());
    EXPECT_EQ(options->process_state.moments_per_parameter,
              static_cast<int>(make_optimizer(config.train)->moment_names().size()))
        << optimizer;
  }
}

TEST(PlanOptions, CountTheMomentumThatSendersKeepInstead) {
  Config config;
  const ModelSpec model = *describe_model(config.model);
  EXPECT_FALSE(plan_options(config, model, 0)->process_state.velocity);
  config.train.optimizer = "sgd";
  EXPECT_TRUE(plan_options(config, model, 0)->process_state.velocity);
  config.compression.error_feedback = false;
  EXPECT_FALSE(plan_options(config, model, 0)->process_state.velocity);
  EXPECT_FALSE(plan_options(config, model, 0)->process_state.has_residual);
}

}  // namespace
}  // namespace motley
