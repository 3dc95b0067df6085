#include "models/layers/chain.h"

#include <algorithm>
#include <set>
#include <utility>

#include <ATen/ATen.h>

#include "base/check.h"
#include "models/graph/graph_failure.h"
#include "models/graph/prepared_package.h"

namespace motley {
namespace {

// A graph may return a tensor that it also saves, and the receiver of a chain's output may
// overwrite it.
at::Tensor apart_from(const std::vector<SavedTensors>& kept, at::Tensor y) {
  const auto is_y = [&](const at::Tensor& tensor) {
    return tensor.defined() && tensor.storage().data() == y.storage().data();
  };
  const bool is_shared = std::ranges::any_of(
      kept, [&](const SavedTensors& layer) { return std::ranges::any_of(layer, is_y); });
  return is_shared ? y.clone() : y;
}

std::shared_ptr<PreparedPackage> prepare(const ModelSpec& spec,
                                         int first,
                                         int last,
                                         const ChainOptions& options) {
  if (spec.package == nullptr) return nullptr;
  auto prepared =
      PreparedPackage::prepare(spec.package, first, last, options.device, options.products);
  if (!prepared.ok()) throw GraphFailure(prepared.error());
  return std::move(prepared).value();
}

// Graphs of packages round the arguments of products themselves.
at::ScalarType rounded_values(const ModelSpec& spec, const ChainOptions& options) {
  return spec.package == nullptr ? options.products : at::kFloat;
}

}  // namespace

LayerChain::LayerChain(const ModelConfig& config,
                       const ModelSpec& spec,
                       int first,
                       int last,
                       const ChainOptions& options)
    : first_(first),
      recompute_(options.recompute),
      product_dtype_(options.products),
      memory_(spec, first, last, options.device, rounded_values(spec, options)) {
  const std::shared_ptr<PreparedPackage> package = prepare(spec, first, last, options);
  for (int index = first; index < last; ++index) {
    const LayerSpec& layer = spec.layers[static_cast<std::size_t>(index)];
    const LayerContext context{config,         index,          package,
                               options.device, product_dtype_, options.plain_operations,
                               options.loss};
    if (index + 1 == static_cast<int>(spec.layers.size())) {
      loss_layer_ = make_loss_layer(layer, context, memory_.of_layer(index));
    } else {
      layers_.push_back(make_layer(layer, context, memory_.of_layer(index)));
    }
  }
}

void LayerChain::begin(double gradient_scale) {
  memory_.round_values();
  product_dtype_.set_gradient_scale(gradient_scale);
}

at::Tensor LayerChain::forward(at::Tensor x, const MicroContext& micro) {
  MOTLEY_CHECK(!ends_in_loss(), "this chain ends in a loss");
  if (repeats(micro)) {
    keep_inputs(micro, {x.clone(), {}});
    return forward_inner(std::move(x), micro, nullptr);
  }
  std::vector<SavedTensors> saved(layers_.size());
  at::Tensor y = forward_inner(std::move(x), micro, &saved);
  y = apart_from(saved, std::move(y));
  keep_saved(micro, std::move(saved));
  return y;
}

at::Tensor LayerChain::backward(at::Tensor grad_output, const MicroContext& micro) {
  MOTLEY_CHECK(!ends_in_loss(), "this chain ends in a loss");
  std::vector<SavedTensors> saved = take_saved(micro);
  return backward_inner(std::move(grad_output), micro, saved, /*weights=*/true);
}

at::Tensor LayerChain::backward_input(at::Tensor grad_output, const MicroContext& micro) {
  MOTLEY_CHECK(!ends_in_loss(), "this chain ends in a loss");
  std::vector<SavedTensors> saved = take_saved(micro);
  at::Tensor grad = backward_inner(std::move(grad_output), micro, saved, /*weights=*/false);
  keep_for_weights(micro, std::move(saved));
  return grad;
}

void LayerChain::backward_weight(std::int64_t micro) {
  auto node = parts_.extract(micro);
  MOTLEY_CHECK(!node.empty(), "micro-batch {} left no weight part to do", micro);
  std::vector<SavedTensors>& saved = node.mapped();
  if (ends_in_loss()) {
    loss_layer_->backward_weight(saved.back());
    if (on_ready_) on_ready_(memory_.offset(layers_.size()));
  }
  for (std::size_t i = layers_.size(); i-- > 0;) {
    layers_[i]->backward_weight(saved[i]);
    if (on_ready_) on_ready_(memory_.offset(i));
  }
  on_ready_ = nullptr;
}

LossLayer::Outcome LayerChain::forward_loss(at::Tensor x,
                                            const at::Tensor& targets,
                                            const MicroContext& micro) {
  return read_loss(forward_loss_unread(std::move(x), targets, micro).numbers.to(at::kCPU));
}

LossLayer::Outcome LayerChain::read_loss(const at::Tensor& host_totals) const {
  MOTLEY_CHECK(ends_in_loss(), "this chain does not end in a loss");
  return loss_layer_->read(host_totals);
}

LossTotals LayerChain::forward_loss_unread(at::Tensor x,
                                           const at::Tensor& targets,
                                           const MicroContext& micro) {
  MOTLEY_CHECK(ends_in_loss(), "this chain does not end in a loss");
  if (repeats(micro)) {
    keep_inputs(micro, {x.clone(), targets});
    SavedTensors nothing;
    return loss_layer_->forward(forward_inner(std::move(x), micro, nullptr), targets, micro,
                                nothing);
  }
  std::vector<SavedTensors> saved(layers_.size() + 1);
  at::Tensor y = forward_inner(std::move(x), micro, &saved);
  LossTotals loss = loss_layer_->forward(std::move(y), targets, micro, saved.back());
  keep_saved(micro, std::move(saved));
  return loss;
}

at::Tensor LayerChain::backward_loss(const MicroContext& micro) {
  MOTLEY_CHECK(ends_in_loss(), "this chain does not end in a loss");
  std::vector<SavedTensors> saved = take_saved(micro);
  return backward_loss_inner(micro, saved, /*weights=*/true);
}

at::Tensor LayerChain::backward_loss_input(const MicroContext& micro) {
  MOTLEY_CHECK(ends_in_loss(), "this chain does not end in a loss");
  std::vector<SavedTensors> saved = take_saved(micro);
  at::Tensor grad = backward_loss_inner(micro, saved, /*weights=*/false);
  keep_for_weights(micro, std::move(saved));
  return grad;
}

at::Tensor LayerChain::logits_at(at::Tensor x, std::int64_t position, const MicroContext& micro) {
  MOTLEY_CHECK(ends_in_loss() && !micro.training, "scores come from a head, outside training");
  return loss_layer_->logits_at(forward_inner(std::move(x), micro, nullptr), position);
}

std::int64_t LayerChain::saved_bytes(std::int64_t micro) const {
  std::set<const void*> counted;
  std::int64_t bytes = 0;
  const auto count = [&](const at::Tensor& tensor) {
    if (!tensor.defined() || !counted.insert(tensor.storage().data()).second) return;
    bytes += static_cast<std::int64_t>(tensor.storage().nbytes());
  };
  for (const auto* by_micro : {&saved_, &parts_}) {
    const auto found = by_micro->find(micro);
    if (found == by_micro->end()) continue;
    for (const SavedTensors& layer : found->second) std::ranges::for_each(layer, count);
  }
  if (const auto found = inputs_.find(micro); found != inputs_.end()) {
    count(found->second.x);
    count(found->second.targets);
  }
  return bytes;
}

void LayerChain::drop_saved() {
  saved_.clear();
  parts_.clear();
  inputs_.clear();
}

at::Tensor LayerChain::forward_inner(at::Tensor x,
                                     const MicroContext& micro,
                                     std::vector<SavedTensors>* saved) {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    SavedTensors nothing;
    x = layers_[i]->forward(std::move(x), micro, saved == nullptr ? nothing : (*saved)[i]);
  }
  return x;
}

at::Tensor LayerChain::backward_inner(at::Tensor grad,
                                      const MicroContext& micro,
                                      std::vector<SavedTensors>& saved,
                                      bool weights) {
  for (std::size_t i = layers_.size(); i-- > 0;) {
    grad = layers_[i]->backward_input(std::move(grad), micro, saved[i]);
    if (!weights) continue;
    layers_[i]->backward_weight(saved[i]);
    if (on_ready_) on_ready_(memory_.offset(i));
  }
  on_ready_ = nullptr;
  return grad;
}

at::Tensor LayerChain::backward_loss_inner(const MicroContext& micro,
                                           std::vector<SavedTensors>& saved,
                                           bool weights) {
  at::Tensor grad = loss_layer_->backward_input(micro, saved.back());
  if (weights) loss_layer_->backward_weight(saved.back());
  if (weights && on_ready_) on_ready_(memory_.offset(layers_.size()));
  return backward_inner(std::move(grad), micro, saved, weights);
}

std::vector<SavedTensors> LayerChain::take_saved(const MicroContext& micro) {
  if (!repeats(micro)) {
    auto node = saved_.extract(micro.micro);
    MOTLEY_CHECK(!node.empty(), "micro-batch {} has no forward to go back over", micro.micro);
    return std::move(node.mapped());
  }
  auto node = inputs_.extract(micro.micro);
  MOTLEY_CHECK(!node.empty(), "micro-batch {} has no forward to go back over", micro.micro);
  Inputs& inputs = node.mapped();
  std::vector<SavedTensors> saved(layers_.size() + (ends_in_loss() ? 1 : 0));
  at::Tensor y = forward_inner(std::move(inputs.x), micro, &saved);
  if (ends_in_loss()) {
    (void)loss_layer_->forward(std::move(y), inputs.targets, micro, saved.back());
  }
  return saved;
}

void LayerChain::keep_for_weights(const MicroContext& micro, std::vector<SavedTensors> saved) {
  const bool fresh = parts_.emplace(micro.micro, std::move(saved)).second;
  MOTLEY_CHECK(fresh, "micro-batch {} still waits for its weight part", micro.micro);
}

void LayerChain::keep_inputs(const MicroContext& micro, Inputs inputs) {
  const bool fresh = inputs_.emplace(micro.micro, std::move(inputs)).second;
  MOTLEY_CHECK(fresh, "micro-batch {} still waits for its backward", micro.micro);
}

void LayerChain::keep_saved(const MicroContext& micro, std::vector<SavedTensors> saved) {
  if (!micro.training) return;
  const bool fresh = saved_.emplace(micro.micro, std::move(saved)).second;
  MOTLEY_CHECK(fresh, "micro-batch {} still waits for its backward", micro.micro);
}

}  // namespace motley
