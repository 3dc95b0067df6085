#include "models/spec/layer_memory.h"

#include <gtest/gtest.h>

#include "chain_fixture.h"

namespace motley::testing {
namespace {

// What each layer of the model, alone, keeps for three samples.
void expect_formulae_hold(const ModelConfig& config) {
  constexpr int kSamples = 3;
  const c10::InferenceMode guard;
  const ModelSpec model = describe_model(config).value();
  const MicroContext micro{1, 1, 0, true};
  for (int layer = 0; layer < static_cast<int>(model.layers.size()); ++layer) {
    LayerChain chain(config, model, layer, layer + 1);
    const at::Tensor tokens = some_tokens(config, kSamples, 1);
    at::Tensor x = layer == 0 ? tokens : at::ones({kSamples, config.context, config.width});
    at::Tensor y;
    if (chain.ends_in_loss()) {
      static_cast<void>(chain.forward_loss(std::move(x), tokens, micro));
    } else {
      y = chain.forward(std::move(x), micro);
    }
    const LayerMemory expected = layer_memory(model, layer);
    const std::string& name = model.layers[static_cast<std::size_t>(layer)].name;
    EXPECT_EQ(chain.saved_bytes(micro.micro), kSamples * expected.saved_bytes) << name;
    if (chain.ends_in_loss()) {
      static_cast<void>(chain.backward_loss_input(micro));
    } else {
      static_cast<void>(chain.backward_input(at::ones_like(y), micro));
    }
    EXPECT_EQ(chain.saved_bytes(micro.micro), kSamples * expected.queued_bytes) << name;
  }
}

TEST(LayerMemory, IsWhatTheLayersKeep) {
  expect_formulae_hold(small_gpt2());
  expect_formulae_hold(small_gpt2(0.1, false));
  expect_formulae_hold(small_mlp());
  expect_formulae_hold(small_mlp(0.1));
}

}  // namespace
}  // namespace motley::testing
