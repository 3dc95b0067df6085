// All layers of a package with the memory of their parameters, as in a worker's stage, and one
// training micro-batch. Inputs and results are on the host, whichever device the layers are on.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/ATen.h>

#include "models/layers/graph_layer.h"
#include "tests/models/read_tensor.h"

namespace motley::testing {

// The packages in tests/models/packages.
inline auto all_packages() {
  return ::testing::Values("mlp", "cnn", "gpt2-tiny", "llama-tiny", "vit-tiny", "adapters-bf16",
                           "adapters-int8", "adapters-nf4");
}

inline std::string package_test_name(const ::testing::TestParamInfo<std::string>& package) {
  std::string name = package.param;
  std::ranges::replace(name, '-', '_');
  return name;
}

struct PackageStep {
  double loss = 0;
  double count = 0;
  std::optional<double> correct;
  std::vector<at::Tensor> gradients;  // of each layer's parameters and statistics

  [[nodiscard]] bool same_bits(const PackageStep& other) const {
    if (loss != other.loss || gradients.size() != other.gradients.size()) return false;
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (!at::equal(gradients[i], other.gradients[i])) return false;
    }
    return true;
  }
};

class PackageChain {
 public:
  enum class Way { kWhole, kSplit, kRecompute };

  explicit PackageChain(std::shared_ptr<const Package> package,
                        c10::Device device = c10::kCPU,
                        at::ScalarType products = at::kFloat)
      : package_(std::move(package)), device_(device) {
    const int count = static_cast<int>(package_->layers.size());
    prepared_ = must(PreparedPackage::prepare(package_, 0, count, device, products));
    const auto weights = must(SafetensorsFile::open(package_->weights_path()));
    for (int l = 0; l < count; ++l) {
      const PackageLayer& layer = package_->layers[static_cast<std::size_t>(l)];
      LayerParameters tensors;
      const auto add = [&](const std::string& name) {
        names_.push_back(name);
        tensors.values.push_back(read_tensor(weights, name).to(device));
        tensors.gradients.push_back(at::zeros_like(tensors.values.back()));
        gradients_.push_back(tensors.gradients.back());
        values_.push_back(tensors.values.back());
      };
      for (const auto& parameter : layer.parameters) add(parameter.name);
      for (const auto& statistic : layer.statistics) add(statistic.name);
      if (l + 1 == count) {
        loss_layer_ = make_graph_loss_layer(prepared_, l, std::move(tensors));
      } else {
        layers_.push_back(make_graph_layer(prepared_, l, std::move(tensors)));
      }
    }
  }

  [[nodiscard]] const Package& package() const { return *package_; }

  // One name per use of a parameter, in the order of the layers.
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }

  [[nodiscard]] std::vector<at::Tensor>& values() { return values_; }

  // The gradients by name; those of a tied parameter's uses are added.
  [[nodiscard]] std::map<std::string, at::Tensor> by_name(const PackageStep& step) const {
    std::map<std::string, at::Tensor> sums;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      const auto [place, is_new] = sums.emplace(names_[i], step.gradients[i]);
      if (!is_new) place->second = place->second + step.gradients[i];
    }
    return sums;
  }

  // Forward and backward of one micro-batch from zero gradients.
  PackageStep step(const at::Tensor& input,
                   const at::Tensor& targets,
                   const MicroContext& micro,
                   Way way = Way::kWhole) {
    for (at::Tensor& gradient : gradients_) gradient.zero_();
    saved_.assign(layers_.size() + 1, {});
    LossLayer::Outcome outcome = forward(input, targets, micro);
    if (way == Way::kRecompute) outcome = forward(input, targets, micro);
    at::Tensor grad = loss_layer_->backward_input(micro, saved_.back());
    if (way != Way::kSplit) loss_layer_->backward_weight(saved_.back());
    for (std::size_t l = layers_.size(); l-- > 0;) {
      grad = layers_[l]->backward_input(std::move(grad), micro, saved_[l]);
      if (way != Way::kSplit) layers_[l]->backward_weight(saved_[l]);
    }
    EXPECT_FALSE(grad.defined());
    if (way == Way::kSplit) {
      loss_layer_->backward_weight(saved_.back());
      for (std::size_t l = layers_.size(); l-- > 0;) layers_[l]->backward_weight(saved_[l]);
    }
    PackageStep step{outcome.loss_sum, outcome.count, outcome.correct, {}};
    for (const at::Tensor& gradient : gradients_) step.gradients.push_back(gradient.cpu().clone());
    return step;
  }

  LossLayer::Outcome forward(const at::Tensor& input,
                             const at::Tensor& targets,
                             const MicroContext& micro) {
    saved_.assign(layers_.size() + 1, {});
    at::Tensor x = inner(input, micro);
    const LossTotals loss =
        loss_layer_->forward(std::move(x), targets.to(device_), micro, saved_.back());
    return loss_layer_->read(loss.numbers.cpu());
  }

  at::Tensor scores_at(const at::Tensor& input, std::int64_t position) {
    saved_.assign(layers_.size() + 1, {});
    return loss_layer_->logits_at(inner(input, {.training = false}), position).cpu();
  }

 private:
  at::Tensor inner(const at::Tensor& input, const MicroContext& micro) {
    at::Tensor x = input.clone().to(device_);
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      x = layers_[l]->forward(std::move(x), micro, saved_[l]);
    }
    return x;
  }

  std::shared_ptr<const Package> package_;
  c10::Device device_;
  std::shared_ptr<PreparedPackage> prepared_;
  std::vector<std::string> names_;
  std::vector<at::Tensor> values_;
  std::vector<at::Tensor> gradients_;
  std::vector<std::unique_ptr<Layer>> layers_;
  std::unique_ptr<LossLayer> loss_layer_;
  std::vector<SavedTensors> saved_;
};

}  // namespace motley::testing
