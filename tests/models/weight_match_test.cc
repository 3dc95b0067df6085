#include "models/spec/weight_match.h"

#include <fmt/format.h>

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "models/spec/hf_config.h"
#include "models/spec/initial_weights.h"

namespace motley {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// A package's model with one layer per parameter; a repeated name is a tied use.
ModelSpec model_of(const std::vector<std::pair<std::string, std::vector<std::int64_t>>>& layers) {
  ModelSpec model;
  model.family = "package";
  for (const auto& [name, shape] : layers) {
    const bool is_tied = std::ranges::any_of(
        model.layers, [&](const LayerSpec& l) { return l.parameters[0].name == name; });
    LayerSpec layer{.name = name};
    layer.parameters.push_back({.name = name, .shape = shape, .init = {}, .tied_use = is_tied});
    model.layers.push_back(std::move(layer));
  }
  return model;
}

ModelSpec llama() {
  return model_of({{"model.embed_tokens.weight", {50, 16}},
                   {"model.layers.0.self_attn.q_proj.weight", {16, 16}},
                   {"model.layers.0.mlp.gate_proj.weight", {32, 16}},
                   {"model.embed_tokens.weight", {50, 16}}});
}

TEST(WeightMatch, FindsNamesWithAndWithoutTheBodys) {
  const TensorShapes shapes = {{"embed_tokens.weight", {50, 16}},
                               {"layers.0.self_attn.q_proj.weight", {16, 16}},
                               {"layers.0.mlp.gate_proj.weight", {32, 16}},
                               {"layers.0.self_attn.rotary_emb.inv_freq", {8}},
                               {"model.rotary_emb.inv_freq", {8}}};
  const WeightMatch match = match_weights(llama(), shapes, Layouts::kSame);
  EXPECT_TRUE(match.is_exact());
  ASSERT_EQ(match.places.size(), 3U);
  EXPECT_EQ(match.places[0].name, "model.embed_tokens.weight");
  EXPECT_EQ(match.places[0].stored, "embed_tokens.weight");
  EXPECT_FALSE(match.tied_copy);
}

TEST(WeightMatch, TakesACopyOfATiedHeadOnlyInItsShape) {
  TensorShapes shapes = {{"model.embed_tokens.weight", {50, 16}},
                         {"model.layers.0.self_attn.q_proj.weight", {16, 16}},
                         {"model.layers.0.mlp.gate_proj.weight", {32, 16}},
                         {"lm_head.weight", {50, 16}}};
  const WeightMatch match = match_weights(llama(), shapes, Layouts::kSame);
  EXPECT_TRUE(match.is_exact());
  ASSERT_TRUE(match.tied_copy);
  EXPECT_EQ(match.tied_copy->stored, "lm_head.weight");
  shapes["lm_head.weight"] = {51, 16};
  EXPECT_THAT(match_weights(llama(), shapes, Layouts::kSame).unexpected,
              ElementsAre("'lm_head.weight' [51, 16] is not in this model"));
}

// The layout of a square weight is ambiguous; a non-square weight of the same kind decides it.
TEST(WeightMatch, TransposesTheLinearWeightsOfAGpt2TogetherOrNotAtAll) {
  const ModelSpec model = model_of({{"transformer.h.0.attn.c_attn.weight", {48, 16}},
                                    {"transformer.h.0.attn.c_proj.weight", {16, 16}},
                                    {"transformer.h.0.attn.other.weight", {16, 16}}});
  TensorShapes shapes = {{"h.0.attn.c_attn.weight", {16, 48}},
                         {"h.0.attn.c_proj.weight", {16, 16}},
                         {"h.0.attn.other.weight", {16, 16}}};
  const WeightMatch match = match_weights(model, shapes, Layouts::kMayBeTransposed);
  EXPECT_TRUE(match.is_exact());
  EXPECT_TRUE(match.places[0].transposed);
  EXPECT_TRUE(match.places[1].transposed);
  EXPECT_FALSE(match.places[2].transposed);
  EXPECT_THAT(
      match_weights(model, shapes, Layouts::kSame).reshaped,
      ElementsAre("'transformer.h.0.attn.c_attn.weight' is [48, 16] for this configuration, "
                  "and there [16, 48]"));
  shapes["h.0.attn.c_attn.weight"] = {48, 16};
  const WeightMatch same = match_weights(model, shapes, Layouts::kMayBeTransposed);
  EXPECT_FALSE(same.places[0].transposed);
  EXPECT_FALSE(same.places[1].transposed);
}

TEST(WeightMatch, NeverTransposesWhereTheLinearWeightsDisagreeOrAreNone) {
  const ModelSpec model = model_of({{"h.0.attn.c_attn.weight", {48, 16}},
                                    {"h.0.mlp.c_fc.weight", {64, 16}},
                                    {"h.0.other.weight", {3, 2}}});
  const TensorShapes shapes = {{"h.0.attn.c_attn.weight", {16, 48}},
                               {"h.0.mlp.c_fc.weight", {64, 16}},
                               {"h.0.other.weight", {2, 3}}};
  EXPECT_THAT(match_weights(model, shapes, Layouts::kMayBeTransposed).reshaped,
              ElementsAre(HasSubstr("c_attn"), HasSubstr("h.0.other")));
}

// If both forms of a name exist, none of them matches two parameters.
TEST(WeightMatch, TakesATensorOnce) {
  const ModelSpec model = model_of({{"a.weight", {1}}, {"model.a.weight", {1}}});
  EXPECT_THAT(match_weights(model, {{"model.a.weight", {1}}}, Layouts::kSame).missing,
              ElementsAre("'model.a.weight' [1] is missing"));
  EXPECT_TRUE(match_weights(model, {{"model.a.weight", {1}}, {"a.weight", {1}}}, Layouts::kSame)
                  .is_exact());
}

// In a model of other sizes no tensor fits: some examples of each kind are enough.
TEST(PlaceWeights, NamesEachKeyAndSomeTensorsOfEachKind) {
  ModelConfig model;
  model.layers = 2;
  model.width = 32;
  model.heads = 4;
  model.context = 16;
  model.vocab = 64;
  ModelConfig other = model;
  other.heads = 2;
  TensorShapes shapes;
  for (int i = 0; i < 300; ++i) shapes[fmt::format("strange.{}", i)] = {7};
  for (const char* name : {"ln_f.bias", "ln_f.weight"}) shapes[name] = {7};
  const auto placed = place_weights(model, {}, shapes, huggingface_config(other), "there");
  ASSERT_FALSE(placed.ok());
  EXPECT_EQ(placed.error().code, ErrorCode::kConfig);
  EXPECT_THAT(placed.error().cause,
              AllOf(HasSubstr("model.heads is 4"), HasSubstr("'wte.weight' [64, 32] is missing"),
                    HasSubstr("; and 23 more are missing; 'ln_f.weight' is [32] for"),
                    HasSubstr("'strange.0' [7] is not in this model"),
                    HasSubstr("; and 297 more are not in this model"),
                    Not(HasSubstr("more have another shape"))));
  EXPECT_LT(placed.error().cause.size(), 800U);
}

TEST(HuggingFaceName, OfAGpt2StandsUnderItsBodyButForTheHead) {
  ModelConfig model;
  EXPECT_EQ(huggingface_name(model, "h.0.ln_1.bias"), "transformer.h.0.ln_1.bias");
  EXPECT_EQ(huggingface_name(model, "lm_head.weight"), "lm_head.weight");
  model.kind = "mlp";
  EXPECT_EQ(huggingface_name(model, "head.weight"), "head.weight");
}

}  // namespace
}  // namespace motley
