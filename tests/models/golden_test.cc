// Loss and gradients against an independent PyTorch implementation (make_gpt2_golden.py).
#include "golden.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "chain_fixture.h"

namespace motley::testing {
namespace {

constexpr double kTolerance = 1e-5;  // relative to the largest value of a tensor; docs/numerics.md

ModelConfig golden_config(const std::string& kind, bool tied) {
  ModelConfig config;
  config.kind = kind;
  config.tied = tied;
  config.layers = 2;
  config.width = 16;
  config.heads = 2;
  config.context = 12;
  config.vocab = 37;
  return config;
}

at::Tensor id_matrix(std::vector<std::int64_t> ids) {
  return at::from_blob(ids.data(), {2, 12}, at::kLong).clone();
}

double largest(std::span<const float> values) {
  double most = 0;
  for (const float value : values) most = std::max(most, std::abs(static_cast<double>(value)));
  return most;
}

// The largest |a - b| relative to the largest |b|.
double difference(std::span<const float> a, std::span<const float> b) {
  EXPECT_EQ(a.size(), b.size());
  double most = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double distance = std::abs(static_cast<double>(a[i]) - b[i]);
    if (!(distance <= most)) most = distance;  // NaN counts as different
  }
  return most / largest(b);
}

// The gradients by name; those of a tied parameter's uses are added.
std::map<std::string, std::vector<float>> gradients_by_name(const LayerChain& chain) {
  std::map<std::string, std::vector<float>> sums;
  for (const LayerChain::Parameter& parameter : chain.parameters()) {
    std::vector<float>& sum = sums[parameter.spec.name];
    sum.resize(parameter.gradients.size());
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += parameter.gradients[i];
  }
  return sums;
}

// The chain of a whole model with the loss of the file, on the CPU or in ATen operations.
LayerChain chain_of(const Golden& golden,
                    const ModelConfig& config,
                    const LossOptions& loss,
                    bool plain_operations) {
  const ModelSpec spec = describe_model(config).value();
  LayerChain chain(config, spec, 0, static_cast<int>(spec.layers.size()),
                   {.plain_operations = plain_operations, .loss = loss});
  for (const LayerChain::Parameter& parameter : chain.parameters()) {
    const std::vector<float> values = golden.floats(parameter.spec.name);
    EXPECT_EQ(values.size(), parameter.values.size()) << parameter.spec.name;
    std::copy(values.begin(), values.end(), parameter.values.begin());
  }
  return chain;
}

void expect_agreement(const std::string& file, const ModelConfig& config) {
  const c10::InferenceMode guard;
  const Golden golden(std::string(MOTLEY_GOLDEN_DIR) + "/" + file);
  LayerChain chain = chain_of(golden, config, {}, /*plain_operations=*/false);
  const auto result =
      step(chain, id_matrix(golden.ids("tokens")), id_matrix(golden.ids("targets")), {});
  const double loss = golden.floats("loss").at(0);
  EXPECT_NEAR(result.loss, loss, kTolerance * loss);
  for (const auto& [name, gradient] : gradients_by_name(chain)) {
    EXPECT_LE(difference(gradient, golden.floats("grad." + name)), kTolerance) << name;
  }
}

TEST(Gpt2, AgreesWithPyTorchWhenTied) {
  expect_agreement("gpt2-tied.safetensors", golden_config("gpt2", true));
}

TEST(Gpt2, AgreesWithPyTorchWhenUntied) {
  expect_agreement("gpt2-untied.safetensors", golden_config("gpt2", false));
}

TEST(Mlp, AgreesWithPyTorch) {
  expect_agreement("mlp.safetensors", golden_config("mlp", false));
}

// Against PyTorch's CrossEntropyLoss(weight=, label_smoothing=), whose mean is over the weights.
void expect_weighted_agreement(const std::string& file,
                               const ModelConfig& config,
                               double label_smoothing) {
  constexpr double kExact = 1e-6;
  const c10::InferenceMode guard;
  const Golden golden(std::string(MOTLEY_GOLDEN_DIR) + "/" + file);
  const LossOptions loss{label_smoothing, golden.floats("weights")};
  for (const bool plain_operations : {false, true}) {
    SCOPED_TRACE(plain_operations ? "in ATen operations" : "on the CPU");
    LayerChain chain = chain_of(golden, config, loss, plain_operations);
    const at::Tensor tokens = id_matrix(golden.ids("tokens"));
    const at::Tensor targets = id_matrix(golden.ids("targets"));
    for (const bool training : {false, true}) {
      const auto outcome = chain.forward_loss(tokens.clone(), targets, {.training = training});
      EXPECT_NEAR(outcome.loss_sum, golden.floats("loss").at(0), kExact * outcome.loss_sum);
      const double mean = golden.floats("mean").at(0);
      EXPECT_NEAR(outcome.loss_sum / outcome.count, mean, kExact * mean);
    }
    static_cast<void>(chain.backward_loss({}));
    for (const auto& [name, gradient] : gradients_by_name(chain)) {
      EXPECT_LE(difference(gradient, golden.floats("grad." + name)), kTolerance) << name;
    }
  }
}

TEST(Gpt2, AgreesWithPyTorchWithWeightsOfClasses) {
  expect_weighted_agreement("gpt2-weighted.safetensors", golden_config("gpt2", false), 0);
}

TEST(Mlp, AgreesWithPyTorchWithLabelSmoothing) {
  expect_weighted_agreement("mlp-smoothed.safetensors", golden_config("mlp", false), 0.1);
}

TEST(Mlp, AgreesWithPyTorchWithBoth) {
  expect_weighted_agreement("mlp-weighted-smoothed.safetensors", golden_config("mlp", false), 0.2);
}

}  // namespace
}  // namespace motley::testing
