// The layers for any device compared with the CPU's, and their guarantees about bits on one
// device.
#include <gtest/gtest.h>

#include "device_chain.h"

namespace motley::testing {
namespace {

constexpr double kTolerance = 1e-5;  // relative to the largest value of a tensor; docs/numerics.md
constexpr MicroContext kMicro{.seed = 11, .step = 3, .micro = 2};

struct DeviceCase {
  const char* name;
  ModelConfig config;
  std::int64_t samples = 3;
};

void PrintTo(const DeviceCase& value, std::ostream* out) {
  *out << value.name;
}

ModelConfig long_gpt2(std::int64_t context, std::int64_t width, std::int64_t heads) {
  ModelConfig config = small_gpt2(0.1);
  config.layers = 1;
  config.context = context;
  config.width = width;
  config.heads = heads;
  return config;
}

ModelConfig short_mlp() {
  ModelConfig config = small_mlp(0.2);
  config.context = 3;  // fewer tokens than a window
  return config;
}

class DeviceLayers : public ::testing::TestWithParam<DeviceCase> {
 protected:
  const ModelConfig& config() const { return GetParam().config; }

  std::int64_t samples() const { return GetParam().samples; }

 private:
  c10::InferenceMode guard_;
};

std::vector<DeviceCase> cases() {
  std::vector<DeviceCase> all = {{"gpt2_one_sample", small_gpt2(0.3), 1},
                                 {"gpt2_tiles", long_gpt2(64, 16, 1), 2},
                                 {"gpt2_blocks", long_gpt2(300, 48, 3), 2},
                                 {"mlp_short", short_mlp(), 4}};
  for (const auto& [name, config] : small_models()) all.push_back({name, config});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Families,
                         DeviceLayers,
                         ::testing::ValuesIn(cases()),
                         [](const auto& instance) { return instance.param.name; });

double largest(const at::Tensor& tensor) {
  return tensor.abs().max().item().toDouble();
}

void expect_near(const Results& results, const Results& expected) {
  EXPECT_EQ(results.outcome.count, expected.outcome.count);
  EXPECT_NEAR(results.outcome.loss_sum, expected.outcome.loss_sum,
              kTolerance * expected.outcome.loss_sum);
  ASSERT_EQ(results.tensors.size(), expected.tensors.size());
  for (std::size_t i = 0; i < results.tensors.size(); ++i) {
    const auto& [name, tensor] = results.tensors[i];
    const at::Tensor& other = expected.tensors[i].second;
    ASSERT_EQ(tensor.defined(), other.defined()) << name;
    if (!tensor.defined()) continue;
    ASSERT_EQ(tensor.sizes(), other.sizes()) << name;
    const double distance = largest(tensor - other);
    EXPECT_TRUE(distance <= kTolerance * largest(other))  // false for NaN
        << name << ": off by " << distance << " of " << largest(other);
  }
}

void expect_same_bits(const Results& results, const Results& expected) {
  EXPECT_EQ(results.outcome.loss_sum, expected.outcome.loss_sum);
  ASSERT_EQ(results.tensors.size(), expected.tensors.size());
  for (std::size_t i = 0; i < results.tensors.size(); ++i) {
    const auto& [name, tensor] = results.tensors[i];
    if (!tensor.defined()) continue;
    EXPECT_TRUE(tensor.equal(expected.tensors[i].second)) << name;
  }
}

TEST_P(DeviceLayers, EachComputesWhatTheCpusDoes) {
  for (int layer = 0; layer < layer_count(config()); ++layer) {
    for (const bool training : {true, false}) {
      SCOPED_TRACE(::testing::Message() << "layer " << layer << ", training " << training);
      const MicroContext micro{.seed = 11, .step = 3, .micro = 2, .training = training};
      LayerChain on_cpu = chain_on_cpu(config(), layer, layer + 1);
      LayerChain on_device = chain_on_device(config(), layer, layer + 1);
      expect_near(results_of(on_device, config(), samples(), micro),
                  results_of(on_cpu, config(), samples(), micro));
      EXPECT_EQ(on_device.saved_bytes(micro.micro), 0);
    }
  }
}

TEST_P(DeviceLayers, TogetherComputeWhatTheCpusDo) {
  LayerChain on_cpu = chain_on_cpu(config(), 0, layer_count(config()));
  LayerChain on_device = chain_on_device(config(), 0, layer_count(config()));
  expect_near(results_of(on_device, config(), samples(), kMicro),
              results_of(on_cpu, config(), samples(), kMicro));
}

TEST_P(DeviceLayers, GiveTheSameBitsInPartsAndWhenTheyRecompute) {
  const int count = layer_count(config());
  for (const auto& [first, last] : {std::pair(0, count - 1), std::pair(1, count)}) {
    LayerChain chain = chain_on_device(config(), first, last);
    const Results whole = results_of(chain, config(), samples(), kMicro);
    expect_same_bits(results_of(chain, config(), samples(), kMicro), whole);
    expect_same_bits(results_of(chain, config(), samples(), kMicro, Way::kSplit), whole);
    LayerChain recomputing = chain_on_device(config(), first, last, Way::kRecompute);
    expect_same_bits(results_of(recomputing, config(), samples(), kMicro), whole);
    expect_same_bits(results_of(recomputing, config(), samples(), kMicro, Way::kSplit), whole);
  }
}

void add_gradients(const LayerChain& chain, Results& results) {
  for (const LayerChain::Parameter& parameter : chain.parameters()) {
    results.add(parameter.spec.name, parameter.gradient_tensor);
  }
}

TEST_P(DeviceLayers, GiveTheSameBitsWhereverTheyAreCut) {
  const int count = layer_count(config());
  const at::Tensor tokens = some_tokens(config(), samples(), 1).to(tested_device().torch());
  const at::Tensor targets = some_tokens(config(), samples(), 2).to(tested_device().torch());
  LayerChain chain = chain_on_device(config(), 0, count);
  Results whole{.outcome = chain.forward_loss(tokens, targets, kMicro), .tensors = {}};
  static_cast<void>(chain.backward_loss(kMicro));
  add_gradients(chain, whole);
  for (int cut = 1; cut < count; ++cut) {
    SCOPED_TRACE(::testing::Message() << "cut at " << cut);
    LayerChain front = chain_on_device(config(), 0, cut);
    LayerChain back = chain_on_device(config(), cut, count);
    const at::Tensor x = front.forward(tokens, kMicro).clone();
    Results parts{.outcome = back.forward_loss(x, targets, kMicro), .tensors = {}};
    static_cast<void>(front.backward(back.backward_loss(kMicro).clone(), kMicro));
    add_gradients(front, parts);
    add_gradients(back, parts);
    expect_same_bits(parts, whole);
  }
}

TEST_P(DeviceLayers, LeaveTheLossUnread) {
  LayerChain chain = chain_on_device(config(), 0, layer_count(config()));
  const at::Tensor tokens = some_tokens(config(), samples(), 1).to(tested_device().torch());
  const at::Tensor targets = some_tokens(config(), samples(), 2).to(tested_device().torch());
  const LossTotals unread = chain.forward_loss_unread(tokens, targets, kMicro);
  EXPECT_EQ(unread.numbers.device(), tested_device().torch());
  chain.drop_saved();
  const auto outcome = chain.read_loss(unread.numbers.cpu());
  EXPECT_EQ(outcome.loss_sum, chain.forward_loss(tokens, targets, kMicro).loss_sum);
  EXPECT_EQ(outcome.count, tokens.numel());
  EXPECT_FALSE(outcome.correct.has_value());
}

TEST_P(DeviceLayers, ScoreAPositionAsTheCpusDo) {
  const MicroContext evaluate{.training = false};
  const at::Tensor tokens = some_tokens(config(), samples(), 1);
  LayerChain on_cpu = chain_on_cpu(config(), 0, layer_count(config()));
  LayerChain on_device = chain_on_device(config(), 0, layer_count(config()));
  Results results;
  results.add("scores", on_device.logits_at(tokens.to(tested_device().torch()), 2, evaluate));
  Results expected;
  expected.add("scores", on_cpu.logits_at(tokens.clone(), 2, evaluate));
  expect_near(results, expected);
}

TEST_P(DeviceLayers, BeginWithTheCpusValues) {
  const LayerChain on_cpu = chain_on_cpu(config(), 0, layer_count(config()));
  LayerChain on_device = chain_on_device(config(), 0, layer_count(config()));
  EXPECT_EQ(on_device.values_tensor().device(), tested_device().torch());
  EXPECT_EQ(on_device.values().empty(), !tested_device().torch().is_cpu());
  EXPECT_TRUE(on_device.values_tensor().cpu().equal(on_cpu.values_tensor()));
  EXPECT_TRUE(on_device.gradients_tensor().cpu().equal(on_cpu.gradients_tensor()));
}

// More scores than attention computes at once, so the samples are processed in two slices.
TEST(DeviceAttention, ComputesManySamplesInSlices) {
  const c10::InferenceMode guard;
  const ModelConfig config = long_gpt2(1024, 16, 4);
  LayerChain on_cpu = chain_on_cpu(config, 1, 2);
  LayerChain on_device = chain_on_device(config, 1, 2);
  expect_near(results_of(on_device, config, 5, kMicro), results_of(on_cpu, config, 5, kMicro));
}

TEST(DeviceHead, EvaluatesALargeVocabularyInSlices) {
  const c10::InferenceMode guard;
  ModelConfig config = long_gpt2(80, 16, 2);
  config.vocab = 140000;
  const MicroContext evaluate{.training = false};
  const int last = layer_count(config);
  LayerChain on_cpu = chain_on_cpu(config, last - 1, last);
  LayerChain on_device = chain_on_device(config, last - 1, last);
  expect_near(results_of(on_device, config, 2, evaluate), results_of(on_cpu, config, 2, evaluate));
}

}  // namespace
}  // namespace motley::testing
