#include "training/optimizer/parameter_rules.h"

#include <gmock/gmock.h>

#include "models/spec/hidden_matrices.h"

namespace motley {
namespace {

using testing::HasSubstr;

ModelSpec gpt(bool tied = true) {
  ModelConfig config;
  config.layers = 2;
  config.width = 32;
  config.heads = 4;
  config.context = 16;
  config.vocab = 61;
  config.tied = tied;
  return describe_model(config).value();
}

TrainConfig with_groups(std::vector<std::string> groups, const std::string& optimizer = "adamw") {
  TrainConfig train;
  train.optimizer = optimizer;
  train.groups = std::move(groups);
  return train;
}

TEST(ParameterRules, LeaveEverythingAsItIsWithoutGroups) {
  const auto rules = ParameterRules::make(TrainConfig(), gpt());
  ASSERT_TRUE(rules.ok());
  const ParameterRule& rule = rules->of("h.0.attn.c_attn.weight");
  EXPECT_EQ(rule.lr_factor, 1);
  EXPECT_FALSE(rule.decay_factor.has_value());
  EXPECT_FALSE(rule.matrix.has_value());
  EXPECT_EQ(rules->summary(), "");
  EXPECT_EQ(rules->matrix_flops_per_parameter(), 0);
}

TEST(ParameterRules, LetTheFirstMatchCount) {
  const auto rules =
      ParameterRules::make(with_groups({"h.0.*.bias: lr=0.5", "*.bias: weight_decay=1",
                                        "h.?.ln_*: lr=2, weight_decay=0"}),
                           gpt());
  ASSERT_TRUE(rules.ok()) << describe(rules.error());
  EXPECT_EQ(rules->of("h.0.attn.c_attn.bias").lr_factor, 0.5);
  EXPECT_FALSE(rules->of("h.0.attn.c_attn.bias").decay_factor.has_value());
  EXPECT_EQ(rules->of("h.1.attn.c_attn.bias").lr_factor, 1);
  EXPECT_EQ(rules->of("h.1.attn.c_attn.bias").decay_factor, 1);
  EXPECT_EQ(rules->of("h.1.ln_1.weight").lr_factor, 2);
  EXPECT_EQ(rules->of("h.1.ln_1.weight").decay_factor, 0);
  EXPECT_EQ(rules->of("wte.weight").lr_factor, 1);
}

TEST(ParameterRules, NameTheClosestParametersOfAPatternWithoutMatch) {
  const auto rules = ParameterRules::make(with_groups({"*.c_atn.weight: lr=0.5"}), gpt());
  ASSERT_FALSE(rules.ok());
  EXPECT_EQ(rules.error().code, ErrorCode::kConfig);
  EXPECT_EQ(rules.error().key, "train.groups");
  EXPECT_THAT(rules.error().what, HasSubstr("'*.c_atn.weight'"));
  EXPECT_THAT(rules.error().cause, HasSubstr("h.0.attn.c_attn.weight, h.1.attn.c_attn.weight"));
}

TEST(ParameterRules, GiveMuonTheHiddenMatrices) {
  const auto rules = ParameterRules::make(with_groups({}, "muon"), gpt(/*tied=*/false));
  ASSERT_TRUE(rules.ok());
  EXPECT_EQ(rules->of("h.0.attn.c_attn.weight").matrix, (MatrixShape{32, 96}));
  EXPECT_EQ(rules->of("h.1.mlp.c_proj.weight").matrix, (MatrixShape{128, 32}));
  for (const char* name :
       {"wte.weight", "wpe.weight", "lm_head.weight", "h.0.ln_1.weight", "h.0.attn.c_attn.bias"}) {
    EXPECT_FALSE(rules->of(name).matrix.has_value()) << name;
  }
  EXPECT_GT(rules->matrix_flops_per_parameter(), 100);
  EXPECT_THAT(rules->summary(), HasSubstr("muon trains 8 matrices with 24576 parameters, adamw"));
}

TEST(ParameterRules, LeaveAMatrixToAdamwOnWish) {
  const auto rules =
      ParameterRules::make(with_groups({"*.c_fc.weight: optimizer=adamw"}, "muon"), gpt());
  ASSERT_TRUE(rules.ok());
  EXPECT_FALSE(rules->of("h.0.mlp.c_fc.weight").matrix.has_value());
  EXPECT_TRUE(rules->of("h.0.mlp.c_proj.weight").matrix.has_value());
}

}  // namespace
}  // namespace motley
