#include "models/spec/layer_memory.h"

#include <set>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "device_chain.h"
#include "models/graph/prepared_package.h"
#include "models/layers/boundary_layout.h"
#include "models/layers/device/attention_core.h"
#include "models/layers/device/device_parts.h"

namespace motley::testing {
namespace {

// Fused operations return the state of a random generator, whose size does not depend on the
// samples.
constexpr std::int64_t kRandomBytesMax = 32;

struct TestedLayers {
  c10::Device device = c10::kCPU;
  bool plain_operations = false;
  at::ScalarType products = at::kFloat;
};

AttentionPath path_of(const ModelConfig& config, const TestedLayers& tested) {
  if (!tested.plain_operations) return AttentionPath::kExplicit;
  LayerContext context;
  context.model = config;
  context.device = tested.device;
  return make_attention_core(context, tested.products)->path();
}

// Compares the memory that each layer of the model saves for three samples with the formula.
void expect_formulae_hold(const ModelConfig& config, const TestedLayers& tested) {
  constexpr int kSamples = 3;
  const ModelSpec model = describe_model(config).value();
  const MicroContext micro{1, 1, 0, true};
  const AttentionPath path = path_of(config, tested);
  const bool rounds = tested.plain_operations;  // the CPU's own layers keep fp32 between products
  const auto value_bytes =
      static_cast<std::int64_t>(c10::elementSize(rounds ? tested.products : at::kFloat));
  for (int layer = 0; layer < static_cast<int>(model.layers.size()); ++layer) {
    LayerChain chain(config, model, layer, layer + 1,
                     {.device = tested.device,
                      .plain_operations = tested.plain_operations,
                      .products = tested.products});
    const at::Tensor tokens = some_tokens(config, kSamples, 1).to(tested.device);
    at::Tensor x = input_of(config, layer, kSamples).to(tested.device);
    at::Tensor y;
    if (chain.ends_in_loss()) {
      static_cast<void>(chain.forward_loss(std::move(x), tokens, micro));
    } else {
      y = chain.forward(std::move(x), micro);
    }
    LayerMemory expected = native_layer_memory(model, layer, path, value_bytes);
    if (tested.plain_operations && chain.ends_in_loss()) {
      // The package's rows of scores are longer than the vocabulary.
      const std::int64_t more =
          value_bytes * config.context * (score_row(config.vocab) - config.vocab);
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
  for (const auto& [name, config] : small_models()) {
    for (const at::ScalarType products : {at::kFloat, at::kBFloat16}) {
      expect_formulae_hold(config, {c10::kCPU, /*plain_operations=*/false, products});
      expect_formulae_hold(config, {tested_device().torch(), /*plain_operations=*/true, products});
    }
  }
}

std::int64_t bytes_of(const at::Tensor& tensor) {
  return static_cast<std::int64_t>(tensor.nbytes());
}

// The persistent memory of a chain of these layers of a package.
PersistentMemory measured_memory(const ModelSpec& model, int first, int last) {
  LayerChain chain({.kind = "package"}, model, first, last, {.device = c10::kCPU});
  PersistentMemory held;
  for (const LayerChain::Parameter& parameter : chain.parameters()) {
    held.value_bytes += bytes_of(parameter.value_tensor);
    held.gradient_bytes += bytes_of(parameter.gradient_tensor);
  }
  const auto prepared = PreparedPackage::prepare(model.package, first, last).value();
  std::set<const void*> seen;
  for (int layer = first; layer < last; ++layer) {
    for (const at::Tensor& constant : prepared->constants(layer)) {
      if (seen.insert(constant.data_ptr()).second) held.constant_bytes += bytes_of(constant);
    }
  }
  return held;
}

constexpr const char* kPackages[] = {"mlp",      "cnn",           "gpt2-tiny",     "llama-tiny",
                                     "vit-tiny", "adapters-bf16", "adapters-int8", "adapters-nf4"};

ModelSpec model_of_package(const std::string& name) {
  ModelConfig config;
  config.kind = "package";
  config.path = std::string(MOTLEY_PACKAGES_DIR) + "/" + name + ".motley";
  return describe_model(config).value();
}

at::Tensor sample_of(const TensorSpec& spec, std::int64_t samples) {
  const auto type = spec.type == Dtype::kFloat32 ? at::kFloat : at::kLong;
  return at::zeros(spec.sizes(samples), type);
}

// The memory that layers [first, last) save for a micro-batch of `samples` samples.
std::int64_t kept_by(const ModelSpec& model, int first, int last, std::int64_t samples) {
  const MicroContext micro{1, 1, 0, true};
  LayerChain chain({.kind = "package"}, model, first, last, {.device = c10::kCPU});
  at::Tensor x;
  if (first == 0) {
    x = sample_of(model.sample.inputs.front().tensor, samples);
  } else {
    const LayerSpec& before = model.layers[static_cast<std::size_t>(first) - 1];
    const BoundaryLayout layout = activation_layout(before, samples);
    x = at::zeros(layout.sizes, layout.type);
  }
  if (chain.ends_in_loss()) {
    static_cast<void>(
        chain.forward_loss(std::move(x), sample_of(model.sample.target, samples), micro));
  } else {
    static_cast<void>(chain.forward(std::move(x), micro));
  }
  return chain.saved_bytes(micro.micro);
}

// A layer that ends in a ReLU saves its output, and a product that receives it saves it too.
TEST(LayerMemory, OfLayersThatFollowEachOtherCountsWhatTheyShareOnce) {
  const c10::InferenceMode guard;
  constexpr std::int64_t kSamples = 3;
  int shared = 0;
  for (const char* name : kPackages) {
    const ModelSpec model = model_of_package(name);
    const int layers = static_cast<int>(model.layers.size());
    std::int64_t said = 0;
    for (int l = 0; l < layers; ++l) {
      said += kept_by(model, l, l + 1, kSamples);
      const LayerSpec& layer = model.layers[static_cast<std::size_t>(l)];
      if (l + 1 == layers || !layer.keeps_output) continue;
      if (!model.layers[static_cast<std::size_t>(l) + 1].keeps_input) continue;
      said -= layer.boundary(kSamples).bytes();
      ++shared;
    }
    EXPECT_EQ(kept_by(model, 0, layers, kSamples), said) << name;
  }
  EXPECT_GT(shared, 0);
}

TEST(LayerMemory, OfWhatLastsIsWhatAPackageHolds) {
  for (const char* name : kPackages) {
    const ModelSpec model = model_of_package(name);
    const int layers = static_cast<int>(model.layers.size());
    for (const auto& [first, last] :
         {std::pair(0, layers), std::pair(1, layers), std::pair(0, 2)}) {
      const PersistentMemory held = measured_memory(model, first, last);
      const PersistentMemory said = persistent_memory(model, first, last, 0);
      EXPECT_EQ(said.constant_bytes, held.constant_bytes) << name;
      EXPECT_EQ(said.value_bytes, held.value_bytes) << name;
      EXPECT_EQ(said.gradient_bytes, held.gradient_bytes) << name;
    }
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
