#include "models/spec/hidden_matrices.h"

#include <gmock/gmock.h>

namespace motley {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Key;
using testing::Not;
using testing::Pair;

std::map<std::string, MatrixShape> matrices_of(const std::string& package) {
  ModelConfig config;
  config.kind = "package";
  config.path = std::string(MOTLEY_PACKAGES_DIR) + "/" + package + ".motley";
  return hidden_matrices(describe_model(config).value());
}

TEST(HiddenMatrices, AreTheLinearLayersOfAnMlpButTheHead) {
  ModelConfig config;
  config.kind = "mlp";
  config.layers = 1;
  config.width = 16;
  config.vocab = 11;
  EXPECT_THAT(hidden_matrices(describe_model(config).value()),
              ElementsAre(Pair("hidden.0.linear.weight", MatrixShape{16, 16}),
                          Pair("input.linear.weight", MatrixShape{16, 16})));
}

TEST(HiddenMatrices, AreFoundInAPackageByTheirUse) {
  const auto llama = matrices_of("llama-tiny");
  EXPECT_THAT(llama, Contains(Key("model.layers.0.self_attn.q_proj.weight")));
  EXPECT_THAT(llama, Contains(Key("model.layers.0.mlp.down_proj.weight")));
  EXPECT_THAT(llama, Not(Contains(Key("model.embed_tokens.weight"))));
  EXPECT_THAT(llama, Not(Contains(Key("lm_head.weight"))));
  EXPECT_THAT(llama, Not(Contains(Key("model.layers.0.input_layernorm.weight"))));
}

TEST(HiddenMatrices, LeaveOutATiedEmbeddingAndPositions) {
  const auto gpt2 = matrices_of("gpt2-tiny");
  EXPECT_THAT(gpt2, Contains(Key("transformer.h.0.attn.c_attn.weight")));
  EXPECT_THAT(gpt2, Not(Contains(Key("transformer.wte.weight"))));
  EXPECT_THAT(gpt2, Not(Contains(Key("transformer.wpe.weight"))));
  const auto vit = matrices_of("vit-tiny");
  EXPECT_THAT(vit, Contains(Key("encoder.layers.encoder_layer_0.self_attention.in_proj_weight")));
  EXPECT_THAT(vit, Not(Contains(Key("encoder.pos_embedding"))));
  EXPECT_THAT(vit, Not(Contains(Key("class_token"))));
  EXPECT_THAT(vit, Not(Contains(Key("heads.head.weight"))));
}

TEST(HiddenMatrices, FlattenKernelsOfConvolutions) {
  const auto cnn = matrices_of("cnn");
  ASSERT_THAT(cnn, Contains(Key("0.weight")));
  EXPECT_GT(cnn.at("0.weight").columns, 1);
}

TEST(HiddenMatrices, LeaveOutTheOutputOfARegression) {
  EXPECT_THAT(matrices_of("mlp"), ElementsAre(Key("0.weight"), Key("2.weight")));
}

}  // namespace
}  // namespace motley
