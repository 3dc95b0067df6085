#include "models/spec/model_spec.h"

#include <cmath>
#include <set>
#include <stdexcept>

#include <gtest/gtest.h>

namespace motley {
namespace {

ModelConfig gpt2_124m() {
  return {};
}

ModelConfig small_mlp() {
  ModelConfig config;
  config.kind = "mlp";
  config.layers = 3;
  config.width = 64;
  config.context = 32;
  config.vocab = 256;
  return config;
}

template <class Change>
ModelConfig changed(ModelConfig config, Change change) {
  change(config);
  return config;
}

ModelSpec spec_of(const ModelConfig& config) {
  return describe_model(config).value();
}

const ParameterSpec& find(const ModelSpec& spec, const std::string& name) {
  for (const LayerSpec& layer : spec.layers) {
    for (const ParameterSpec& parameter : layer.parameters) {
      if (parameter.name == name) return parameter;
    }
  }
  throw std::runtime_error(name);
}

TEST(ModelSpec, CountsGpt2AsHuggingFaceDoes) {
  EXPECT_EQ(spec_of(gpt2_124m()).parameter_count(), 124439808);
  const ModelConfig untied = changed(gpt2_124m(), [](auto& c) { c.tied = false; });
  EXPECT_EQ(spec_of(untied).parameter_count(), 124439808 + 50257 * 768);
}

TEST(ModelSpec, NamesGpt2sLayers) {
  const ModelSpec spec = spec_of(changed(gpt2_124m(), [](auto& c) { c.layers = 1; }));
  ASSERT_EQ(spec.layers.size(), 4U);
  EXPECT_EQ(spec.layers[0].name, "embed");
  EXPECT_EQ(spec.layers[1].name, "h.0.attn");
  EXPECT_EQ(spec.layers[2].name, "h.0.mlp");
  EXPECT_EQ(spec.layers[3].name, "head");
  EXPECT_EQ(find(spec, "h.0.attn.c_attn.weight").shape, (std::vector<std::int64_t>{768, 2304}));
  EXPECT_EQ(find(spec, "h.0.mlp.c_proj.weight").shape, (std::vector<std::int64_t>{3072, 768}));
}

TEST(ModelSpec, DecaysMatricesButNotPositions) {
  const ModelSpec spec = spec_of(gpt2_124m());
  for (const LayerSpec& layer : spec.layers) {
    for (const ParameterSpec& parameter : layer.parameters) {
      const bool matrix = parameter.shape.size() == 2;
      EXPECT_EQ(parameter.decayed, matrix && parameter.name != "wpe.weight") << parameter.name;
    }
  }
}

TEST(ModelSpec, ShrinksResidualProjectionsWithDepth) {
  const ModelSpec spec = spec_of(gpt2_124m());
  EXPECT_DOUBLE_EQ(find(spec, "h.3.mlp.c_fc.weight").init.scale, 0.02);
  EXPECT_DOUBLE_EQ(find(spec, "h.3.mlp.c_proj.weight").init.scale, 0.02 / std::sqrt(24.0));
  EXPECT_DOUBLE_EQ(find(spec, "h.3.ln_1.weight").init.scale, 1.0);
}

TEST(ModelSpec, FindsTheTiedPair) {
  const auto tied = spec_of(gpt2_124m()).tied_pair();
  ASSERT_TRUE(tied.has_value());
  EXPECT_EQ(tied->owner_layer, 0);
  EXPECT_EQ(tied->user_layer, 25);
  EXPECT_EQ(tied->parameter, "wte.weight");
  EXPECT_FALSE(spec_of(small_mlp()).tied_pair().has_value());
}

TEST(ModelSpec, SignsEqualLayersEqually) {
  const ModelSpec spec = spec_of(gpt2_124m());
  std::set<std::string> signatures;
  for (const LayerSpec& layer : spec.layers) signatures.insert(layer.signature);
  EXPECT_EQ(signatures.size(), 4U);
  for (const auto change :
       {+[](ModelConfig& c) { c.heads = 6; }, +[](ModelConfig& c) { c.width = 1536; },
        +[](ModelConfig& c) { c.context = 64; }, +[](ModelConfig& c) { c.dropout = 0.1; }}) {
    EXPECT_NE(spec_of(changed(gpt2_124m(), change)).layers[1].signature, spec.layers[1].signature);
  }
  const auto deeper = [](ModelConfig& c) { c.layers = 24; };
  EXPECT_EQ(spec_of(changed(gpt2_124m(), deeper)).layers[1].signature, spec.layers[1].signature);
}

TEST(ModelSpec, HashesWhatACheckpointHolds) {
  const std::string base = spec_of(gpt2_124m()).hash();
  for (const auto same :
       {+[](ModelConfig& c) { c.dropout = 0.1; }, +[](ModelConfig& c) { c.init_from = "x"; }}) {
    EXPECT_EQ(spec_of(changed(gpt2_124m(), same)).hash(), base);
  }
  for (const auto other :
       {+[](ModelConfig& c) { c.heads = 6; }, +[](ModelConfig& c) { c.layers = 11; },
        +[](ModelConfig& c) { c.tied = false; }, +[](ModelConfig& c) { c.vocab = 50258; }}) {
    EXPECT_NE(spec_of(changed(gpt2_124m(), other)).hash(), base);
  }
}

TEST(ModelSpec, CountsExactValuesInBytes) {
  LayerSpec layer;
  layer.outputs = {{4, 3}, {5}};
  layer.exact_outputs = {{Dtype::kFloat32, {2, 2}}, {Dtype::kInt64, {7}}, {Dtype::kBool, {3, 3}}};
  const BoundarySize size = layer.boundary(2);
  EXPECT_EQ(size, (BoundarySize{2 * 17, 2 * (16 + 56 + 9)}));
  EXPECT_EQ(size.gradient(), (BoundarySize{34, 0}));
  EXPECT_EQ(size.bytes(), 4 * 34 + 162);
}

TEST(ModelSpec, SaysWhatCrossesBoundaries) {
  const ModelSpec spec = spec_of(small_mlp());
  EXPECT_EQ(spec.layers.front().boundary(2), (BoundarySize{2 * 32 * 64, 0}));
  EXPECT_EQ(spec.layers.back().boundary(2), BoundarySize{});
}

TEST(ModelSpec, CountsTheProductsOfAForward) {
  const ModelSpec spec = spec_of(small_mlp());
  EXPECT_DOUBLE_EQ(spec.layers[1].forward_flops_per_sample, 2.0 * 32 * 64 * 64);
  EXPECT_DOUBLE_EQ(spec.layers.back().forward_flops_per_sample, 2.0 * 32 * 64 * 256);
}

struct Mistake {
  const char* key;
  void (*make)(ModelConfig&);
};

class BadModel : public ::testing::TestWithParam<Mistake> {};

TEST_P(BadModel, IsRefusedByName) {
  const auto spec = describe_model(changed(gpt2_124m(), GetParam().make));
  ASSERT_FALSE(spec.ok());
  EXPECT_EQ(spec.error().code, ErrorCode::kConfig);
  EXPECT_NE(spec.error().what.find(GetParam().key), std::string::npos) << spec.error().what;
  EXPECT_FALSE(spec.error().remedy.empty());
}

INSTANTIATE_TEST_SUITE_P(
    Sizes,
    BadModel,
    ::testing::Values(Mistake{"kind", [](ModelConfig& c) { c.kind = "rnn"; }},
                      Mistake{"layers", [](ModelConfig& c) { c.layers = 0; }},
                      Mistake{"width", [](ModelConfig& c) { c.width = -1; }},
                      Mistake{"heads", [](ModelConfig& c) { c.heads = 7; }},
                      Mistake{"heads", [](ModelConfig& c) { c.heads = 0; }},
                      Mistake{"context", [](ModelConfig& c) { c.context = 0; }},
                      Mistake{"vocab", [](ModelConfig& c) { c.vocab = 1; }},
                      Mistake{"vocab", [](ModelConfig& c) { c.vocab = 2000000000; }},
                      Mistake{"dropout", [](ModelConfig& c) { c.dropout = 1.0; }},
                      Mistake{"dropout", [](ModelConfig& c) { c.dropout = -0.1; }},
                      Mistake{"width", [](ModelConfig& c) { c.kind = "mlp", c.width = 60; }}));

}  // namespace
}  // namespace motley
