#include "models/spec/layer_memory.h"

#include <gtest/gtest.h>

#include "device_chain.h"
#include "models/layers/device/attention_core.h"
#include "models/layers/device/device_parts.h"

namespace motley::testing {
namespace {

// Fused operations give numbers of a random generator back, which do not grow with the samples.
constexpr std::int64_t kRandomBytesMax = 32;

AttentionPath path_of(const ModelConfig& config, c10::Device device, bool plain_operations) {
  if (!plain_operations) return AttentionPath::kExplicit;
  LayerContext context;
  context.model = config;
  context.device = device;
  return make_attention_core(context, at::kFloat)->path();
}

// What each layer of the model, alone, keeps for three samples.
void expect_formulae_hold(const ModelConfig& config, c10::Device device, bool plain_operations) {
  constexpr int kSamples = 3;
  const ModelSpec model = describe_model(config).value();
  const MicroContext micro{1, 1, 0, true};
  const AttentionPath path = path_of(config, device, plain_operations);
  for (int layer = 0; layer < static_cast<int>(model.layers.size()); ++layer) {
    LayerChain chain(config, model, layer, layer + 1,
                     {.device = device, .plain_operations = plain_operations});
    const at::Tensor tokens = some_tokens(config, kSamples, 1).to(device);
    at::Tensor x = input_of(config, layer, kSamples).to(device);
    at::Tensor y;
    if (chain.ends_in_loss()) {
      static_cast<void>(chain.forward_loss(std::move(x), tokens, micro));
    } else {
      y = chain.forward(std::move(x), micro);
    }
    LayerMemory expected = native_layer_memory(model, layer, path);
    if (plain_operations && chain.ends_in_loss()) {
      // Rows of scores are longer than the vocabulary there.
      const std::int64_t more = 4 * config.context * (score_row(config.vocab) - config.vocab);
      expected.saved_bytes += more;
      expected.queued_bytes += more;
    }
    const std::string& name = model.layers[static_cast<std::size_t>(layer)].name;
    const std::int64_t beside = chain.saved_bytes(micro.micro) - kSamples * expected.saved_bytes;
    EXPECT_GE(beside, 0) << name;
    EXPECT_LE(beside, path == AttentionPath::kExplicit ? 0 : kRandomBytesMax) << name;
    if (chain.ends_in_loss()) {
      static_cast<void>(chain.backward_loss_input(micro));
    } else {
      static_cast<void>(chain.backward_input(at::ones_like(y), micro));
    }
    EXPECT_EQ(chain.saved_bytes(micro.micro), kSamples * expected.queued_bytes) << name;
  }
}

TEST(LayerMemory, IsWhatTheLayersKeep) {
  const c10::InferenceMode guard;
  for (const ModelConfig& config :
       {small_gpt2(), small_gpt2(0.1, false), small_mlp(), small_mlp(0.1)}) {
    expect_formulae_hold(config, c10::kCPU, /*plain_operations=*/false);
    expect_formulae_hold(config, tested_device().torch(), /*plain_operations=*/true);
  }
}

TEST(LayerMemory, OfVirtualDevicesIsThatOfTheCpu) {
  const ModelSpec model = describe_model(small_gpt2()).value();
  for (int layer = 0; layer < static_cast<int>(model.layers.size()); ++layer) {
    EXPECT_EQ(layer_memory(model, layer).saved_bytes,
              native_layer_memory(model, layer, AttentionPath::kExplicit).saved_bytes);
  }
}

}  // namespace
}  // namespace motley::testing
