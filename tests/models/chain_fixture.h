// Fixtures for the tests of layer chains: small models, tokens, and one training micro-batch.
#pragma once

#include <algorithm>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include "base/philox.h"
#include "models/layers/chain.h"

namespace motley::testing {

inline ModelConfig small_gpt2(double dropout = 0.0, bool tied = true) {
  ModelConfig config;
  config.layers = 2;
  config.width = 32;
  config.heads = 4;
  config.context = 19;
  config.vocab = 50;
  config.dropout = dropout;
  config.tied = tied;
  return config;
}

inline ModelConfig small_mlp(double dropout = 0.0) {
  ModelConfig config = small_gpt2(dropout);
  config.kind = "mlp";
  return config;
}

struct SmallModel {
  const char* name;
  ModelConfig config;
};

inline void PrintTo(const SmallModel& model, std::ostream* out) {
  *out << model.name;
}

// Those of every native family, for tests of all their layers.
inline std::vector<SmallModel> small_models() {
  return {{"gpt2", small_gpt2()},
          {"gpt2_untied", small_gpt2(0.0, false)},
          {"gpt2_dropout", small_gpt2(0.1)},
          {"mlp", small_mlp()},
          {"mlp_dropout", small_mlp(0.1)}};
}

inline at::Tensor some_tokens(const ModelConfig& config, std::int64_t samples, std::uint64_t key) {
  at::Tensor tokens = at::empty({samples, config.context}, at::kLong);
  auto* ids = tokens.data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < tokens.numel(); ++i) {
    ids[i] = philox4x32(key, 0, static_cast<std::uint64_t>(i))[0] %
             static_cast<std::uint32_t>(config.vocab);
  }
  return tokens;
}

inline LayerChain whole_model(const ModelConfig& config, bool recompute = false) {
  const ModelSpec spec = describe_model(config).value();
  LayerChain chain(config, spec, 0, static_cast<int>(spec.layers.size()), {.recompute = recompute});
  chain.initialize(5);
  return chain;
}

inline std::vector<float> copy_of(std::span<const float> values) {
  return {values.begin(), values.end()};
}

struct StepResult {
  double loss = 0;
  std::vector<float> gradients;  // in the order of parameters, without gaps
  friend bool operator==(const StepResult&, const StepResult&) = default;
};

inline void append_gradients(const LayerChain& chain, std::vector<float>& gradients) {
  for (const LayerChain::Parameter& parameter : chain.parameters()) {
    gradients.insert(gradients.end(), parameter.gradients.begin(), parameter.gradients.end());
  }
}

// Forward and backward of one micro-batch from zero gradients.
inline StepResult step(LayerChain& chain,
                       const at::Tensor& tokens,
                       const at::Tensor& targets,
                       const MicroContext& micro) {
  std::ranges::fill(chain.gradients(), 0.0F);
  StepResult result;
  result.loss = chain.forward_loss(tokens, targets, micro).loss_sum;
  static_cast<void>(chain.backward_loss(micro));
  append_gradients(chain, result.gradients);
  return result;
}

}  // namespace motley::testing
