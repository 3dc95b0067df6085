// Chains of the device-independent layers (models/layers/device) and of the CPU's layers, and the
// results of one micro-batch of each, on the host.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include "chain_fixture.h"
#include "tests/support/tested_device.h"

namespace motley::testing {

enum class Way { kWhole, kSplit, kRecompute };

// The layers [first, last) with their initial values.
inline LayerChain chain_on_cpu(const ModelConfig& config, int first, int last) {
  LayerChain chain(config, describe_model(config).value(), first, last);
  chain.initialize(5);
  return chain;
}

inline LayerChain chain_on_device(const ModelConfig& config,
                                  int first,
                                  int last,
                                  Way way = Way::kWhole) {
  LayerChain chain(config, describe_model(config).value(), first, last,
                   {.recompute = way == Way::kRecompute,
                    .device = tested_device().torch(),
                    .plain_operations = true});
  chain.initialize(5);
  return chain;
}

inline int layer_count(const ModelConfig& config) {
  return static_cast<int>(describe_model(config).value().layers.size());
}

// Values between -1 and 1 that depend on `key`.
inline at::Tensor some_floats(at::IntArrayRef sizes, std::uint64_t key) {
  at::Tensor x = at::empty(sizes, at::kFloat);
  auto* values = x.data_ptr<float>();
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    values[i] = 2 * to_unit_float(philox4x32(key, 1, static_cast<std::uint64_t>(i))[0]) - 1;
  }
  return x;
}

// An input of the layers [first, …).
inline at::Tensor input_of(const ModelConfig& config, int first, std::int64_t samples) {
  if (first == 0) return some_tokens(config, samples, 1);
  return some_floats({samples, config.context, config.width}, 1);
}

// A micro-batch's results by name, on the host; absent ones are undefined.
struct Results {
  LossLayer::Outcome outcome;  // of a chain that ends in the loss
  std::vector<std::pair<std::string, at::Tensor>> tensors;

  void add(std::string name, const at::Tensor& tensor) {
    tensors.emplace_back(std::move(name), tensor.defined() ? tensor.cpu() : tensor);
  }
};

// Forward and backward of one micro-batch from zero gradients.
inline Results results_of(LayerChain& chain,
                          const ModelConfig& config,
                          std::int64_t samples,
                          const MicroContext& micro,
                          Way way = Way::kWhole) {
  const c10::Device device = chain.gradients_tensor().device();
  const int first = chain.parameters().front().layer;
  chain.gradients_tensor().zero_();
  Results results;
  at::Tensor x = input_of(config, first, samples).to(device);
  at::Tensor grad;
  if (chain.ends_in_loss()) {
    const at::Tensor targets = some_tokens(config, samples, 2).to(device);
    results.outcome = chain.forward_loss(std::move(x), targets, micro);
    if (micro.training && way != Way::kSplit) grad = chain.backward_loss(micro);
    if (micro.training && way == Way::kSplit) grad = chain.backward_loss_input(micro);
  } else {
    at::Tensor y = chain.forward(std::move(x), micro);
    results.add("output", y);
    grad = some_floats(y.sizes(), 3).to(device);
    if (micro.training && way != Way::kSplit) grad = chain.backward(std::move(grad), micro);
    if (micro.training && way == Way::kSplit) grad = chain.backward_input(std::move(grad), micro);
  }
  if (!micro.training) return results;
  results.add("gradient of the input", grad);
  if (way == Way::kSplit) chain.backward_weight(micro.micro);
  for (const LayerChain::Parameter& parameter : chain.parameters()) {
    results.add("gradient of " + parameter.spec.name, parameter.gradient_tensor);
  }
  return results;
}

}  // namespace motley::testing
