#include "models/spec/initial_weights.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "models/spec/hf_config.h"
#include "models/spec/model_spec.h"

namespace motley {
namespace {

using testing::AllOf;
using testing::HasSubstr;

ModelConfig small_gpt2() {
  ModelConfig model;
  model.layers = 2;
  model.width = 32;
  model.heads = 4;
  model.context = 16;
  model.vocab = 64;
  return model;
}

ModelConfig small_mlp() {
  ModelConfig model = small_gpt2();
  model.kind = "mlp";
  return model;
}

TensorShapes shapes_of(const ModelConfig& model) {
  TensorShapes shapes;
  const ModelSpec spec = describe_model(model).value();
  for (const LayerSpec& layer : spec.layers) {
    for (const ParameterSpec& each : layer.parameters) shapes[each.name] = each.shape;
  }
  return shapes;
}

// The error text for `model`'s own weights with `config`; "" if there is none.
std::string said_of(const ModelConfig& model, const TensorShapes& tensors, const Json& config) {
  const auto checked =
      check_weights(model, {{"model.heads", "job.toml:7:1"}}, tensors, config, "w/config.json");
  if (checked.ok()) return "";
  EXPECT_EQ(checked.error().code, ErrorCode::kConfig);
  return describe(checked.error());
}

Json with(const char* key, Json value) {
  Json config = huggingface_config(small_gpt2());
  config[key] = std::move(value);
  return config;
}

TEST(InitialWeights, AreAcceptedWhereTheyAreTheModels) {
  for (const ModelConfig& model : {small_gpt2(), small_mlp()}) {
    EXPECT_EQ(said_of(model, shapes_of(model), huggingface_config(model)), "");
    EXPECT_EQ(said_of(model, shapes_of(model), Json()), "");
  }
  ModelConfig dropping = small_gpt2();
  dropping.dropout = 0.2;
  EXPECT_EQ(said_of(dropping, shapes_of(dropping), huggingface_config(small_gpt2())), "")
      << "dropout does not say whose weights they are";
}

struct OtherModel {
  void (*change)(ModelConfig&);
  const char* ours;
  const char* theirs;
};

TEST(InitialWeights, OfAnotherModelAreRefusedWithBothValues) {
  const std::vector<OtherModel> others = {
      {+[](ModelConfig& m) { m.heads = 2; }, "model.heads is 2 (job.toml:7:1)", "n_head there 4"},
      {+[](ModelConfig& m) { m.layers = 1; }, "model.layers is 1", "n_layer there 2"},
      {+[](ModelConfig& m) { m.layers = 3; }, "model.layers is 3", "n_layer there 2"},
      {+[](ModelConfig& m) { m.width = 64; }, "model.width is 64", "n_embd there 32"},
      {+[](ModelConfig& m) { m.context = 8; }, "model.context is 8", "n_positions there 16"},
      {+[](ModelConfig& m) { m.vocab = 65; }, "model.vocab is 65", "vocab_size there 64"},
      {+[](ModelConfig& m) { m.tied = false; }, "model.tied is false",
       "tie_word_embeddings there true"},
      {+[](ModelConfig& m) { m.kind = "mlp"; }, "model.kind is mlp", "the model there gpt2"},
  };
  for (const OtherModel& other : others) {
    ModelConfig model = small_gpt2();
    other.change(model);
    EXPECT_THAT(said_of(model, shapes_of(small_gpt2()), huggingface_config(small_gpt2())),
                AllOf(HasSubstr(other.ours), HasSubstr(other.theirs), HasSubstr("w/config.json")));
  }
}

// Without a config.json only the number of heads is unknown.
TEST(InitialWeights, AreKnownByTheirTensorsToo) {
  for (const auto& [change, ours] : std::vector<std::pair<void (*)(ModelConfig&), const char*>>{
           {+[](ModelConfig& m) { m.layers = 1; }, "model.layers is 1"},
           {+[](ModelConfig& m) { m.context = 8; }, "model.context is 8"},
           {+[](ModelConfig& m) { m.tied = false; }, "model.tied is false"}}) {
    ModelConfig model = small_gpt2();
    change(model);
    EXPECT_THAT(said_of(model, shapes_of(small_gpt2()), Json()), HasSubstr(ours));
  }
  ModelConfig untied = small_gpt2();
  untied.tied = false;
  EXPECT_THAT(said_of(small_gpt2(), shapes_of(untied), Json()), HasSubstr("model.tied is true"));
}

// The config.json and the weights may differ.
TEST(InitialWeights, MustHaveExactlyTheModelsParameters) {
  const Json config = huggingface_config(small_gpt2());
  TensorShapes tensors = shapes_of(small_gpt2());
  tensors["h.0.attn.bias"] = {1, 1, 16, 16};  // a mask that transformers used to save
  tensors["h.1.attn.masked_bias"] = {};
  tensors["lm_head.weight"] = {64, 32};  // a copy of the embedding
  EXPECT_EQ(said_of(small_gpt2(), tensors, config), "");
  tensors["h.2.ln_1.weight"] = {32};
  EXPECT_THAT(said_of(small_gpt2(), tensors, config),
              HasSubstr("'h.2.ln_1.weight' [32] is not in this model"));
  tensors.erase("h.2.ln_1.weight");
  tensors["ln_f.weight"] = {31};
  EXPECT_THAT(said_of(small_gpt2(), tensors, config),
              HasSubstr("'ln_f.weight' is [32] for this configuration, and there [31]"));
  tensors.erase("ln_f.weight");
  EXPECT_THAT(said_of(small_gpt2(), tensors, config), HasSubstr("'ln_f.weight' [32] is missing"));
}

TEST(InitialWeights, OfAModelThatMotleyDoesNotComputeAreRefusedByName) {
  const std::vector<std::pair<const char*, Json>> unexpected = {
      {"activation_function", "relu"},
      {"layer_norm_epsilon", 1e-6},
      {"n_inner", 64},
      {"scale_attn_weights", false},
      {"scale_attn_by_inverse_layer_idx", true},
      {"add_cross_attention", true},
      {"is_encoder_decoder", true},
      {"pruned_heads", {{"0", {1}}}},
      {"quantization_config", {{"bits", 4}}},
      {"model_type", "llama"},
  };
  for (const auto& [key, value] : unexpected) {
    EXPECT_THAT(said_of(small_gpt2(), shapes_of(small_gpt2()), with(key, value)),
                AllOf(HasSubstr(key), HasSubstr(value.dump())));
  }
  const std::vector<std::pair<const char*, Json>> alike = {
      {"activation_function", "gelu_pytorch_tanh"},
      {"layer_norm_epsilon", 1e-05},
      {"n_inner", nullptr},
      {"n_inner", 128},
      {"add_cross_attention", false},
      {"pruned_heads", Json::object()},
      {"reorder_and_upcast_attn", true},
      {"resid_pdrop", 0.1}};
  for (const auto& [key, value] : alike) {
    EXPECT_EQ(said_of(small_gpt2(), shapes_of(small_gpt2()), with(key, value)), "") << key;
  }
}

TEST(ModelOfHuggingFace, IsWhatWasWritten) {
  ModelConfig model = small_gpt2();
  model.tied = false;
  model.dropout = 0.25;
  for (const ModelConfig& each : {model, small_mlp()}) {
    const auto read = model_of_huggingface(huggingface_config(each), "config.json");
    ASSERT_TRUE(read.ok()) << describe(read.error());
    EXPECT_EQ(huggingface_config(*read), huggingface_config(each));
  }
}

// As transformers does.
TEST(ModelOfHuggingFace, TakesDefaultsAndOtherNames) {
  const auto small = model_of_huggingface(Json{{"model_type", "gpt2"}}, "c");
  ASSERT_TRUE(small.ok()) << describe(small.error());
  EXPECT_EQ(describe_model(*small)->parameter_count(), 124439808);
  EXPECT_EQ(small->dropout, 0.1);
  const auto named = model_of_huggingface(
      Json{{"model_type", "gpt2"}, {"num_hidden_layers", 3}, {"hidden_size", 24}}, "c");
  ASSERT_TRUE(named.ok()) << describe(named.error());
  EXPECT_EQ(named->layers, 3);
  EXPECT_EQ(named->width, 24);
}

TEST(ModelOfHuggingFace, TrustsNothing) {
  for (const auto& [key, value] :
       std::vector<std::pair<const char*, Json>>{{"n_layer", -1},
                                                 {"n_layer", 0},
                                                 {"n_layer", 1'000'000'000'000},
                                                 {"n_embd", 2.5},
                                                 {"n_head", "4"},
                                                 {"tie_word_embeddings", "yes"},
                                                 {"activation_function", 3},
                                                 {"layer_norm_epsilon", "small"},
                                                 {"model_type", 7}}) {
    const auto read = model_of_huggingface(with(key, value), "w/config.json");
    ASSERT_FALSE(read.ok()) << key;
    EXPECT_EQ(read.error().code, ErrorCode::kCorrupt) << describe(read.error());
    EXPECT_THAT(describe(read.error()), AllOf(HasSubstr(key), HasSubstr("w/config.json")));
  }
  for (const auto& [key, value] : std::vector<std::pair<const char*, Json>>{
           {"n_head", 5}, {"n_layer", 1 << 20}, {"resid_pdrop", 1.5}}) {
    const auto read = model_of_huggingface(with(key, value), "w/config.json");
    ASSERT_FALSE(read.ok()) << key;
    EXPECT_THAT(describe(read.error()), HasSubstr("w/config.json"));
  }
  EXPECT_FALSE(model_of_huggingface(Json::object(), "c").ok());
}

}  // namespace
}  // namespace motley
