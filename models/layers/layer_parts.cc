#include "models/layers/layer_parts.h"

#include <cmath>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include "models/device/compute_device.h"
#include "models/kernels/kernels.h"
#include "models/kernels/matrix_product.h"

namespace motley {

at::Tensor as_matrix(const at::Tensor& x) {
  return x.view({-1, x.size(-1)});
}

void dropout_in_place(at::Tensor& x, double p, const MicroContext& micro, int layer) {
  if (p == 0.0 || !micro.training) return;
  auto* data = x.data_ptr<float>();
  DropoutStream(p, micro, layer, DropoutSite::kOutput).apply(data, data, x.numel(), 0);
}

at::Tensor ranks_of(const at::Tensor& scores, const at::Tensor& targets) {
  const at::Tensor column = targets.view({-1, 1});
  const at::Tensor own = scores.gather(1, column);
  const at::Tensor places = at::arange(scores.size(1), targets.options()).view({1, -1});
  const at::Tensor is_before = scores.eq(own).logical_and(places.lt(column));
  return scores.le(own).logical_not().logical_or(is_before).sum(1);
}

LossTotals loss_totals(const at::Tensor& loss_sum,
                       const at::Tensor& count,
                       const at::Tensor& ranks) {
  const c10::Device device = loss_sum.device();
  const auto number = [&](const at::Tensor& tensor) {
    return tensor.reshape({}).to(exact_type(device));
  };
  std::vector<at::Tensor> numbers = {number(loss_sum), number(count)};
  if (ranks.defined()) {
    numbers.push_back(at::full({}, at::Scalar(ranks.numel()), numbers.front().options()));
    numbers.push_back(number(ranks.eq(0).sum()));
    numbers.push_back(number(ranks.lt(PredictionCounts::kFive).sum()));
  }
  return {at::stack(numbers)};
}

LossLayer::Outcome predicted_outcome(const at::Tensor& host_totals, std::int64_t classes) {
  constexpr std::int64_t kWithPredictions = 5;
  if (host_totals.numel() < kWithPredictions) return outcome_of(host_totals);
  const at::Tensor numbers = host_totals.to(at::kDouble).contiguous();
  const auto* const values = numbers.data_ptr<double>();
  PredictionCounts predictions{std::llround(values[2]), std::llround(values[3]), std::nullopt};
  if (classes > PredictionCounts::kFive) predictions.top_five = std::llround(values[4]);
  return {values[0], values[1], std::nullopt, predictions};
}

LossLayer::Outcome outcome_of(const at::Tensor& host_totals) {
  const at::Tensor numbers = host_totals.to(at::kDouble).contiguous();
  const auto* const values = numbers.data_ptr<double>();
  LossLayer::Outcome outcome{.loss_sum = values[0], .count = values[1]};
  if (numbers.numel() > 2) outcome.correct = values[2];
  return outcome;
}

Norm::Norm(const LayerParameters& parameters, std::size_t first)
    : weight_(parameters.values[first]),
      bias_(parameters.values[first + 1]),
      grad_weight_(parameters.gradients[first]),
      grad_bias_(parameters.gradients[first + 1]) {}

Norm::Output Norm::forward(const at::Tensor& x) const {
  auto [y, mean, inverse_deviation] =
      at::native_layer_norm(x, {x.size(-1)}, weight_, bias_, kLayerNormEpsilon);
  return {y, mean, inverse_deviation};
}

at::Tensor Norm::backward(const at::Tensor& grad_y,
                          const at::Tensor& x,
                          const at::Tensor& mean,
                          const at::Tensor& inverse_deviation) {
  auto [grad_x, grad_weight, grad_bias] = at::native_layer_norm_backward(
      grad_y, x, {x.size(-1)}, mean, inverse_deviation, weight_, bias_, {true, true, true});
  grad_weight_.add_(grad_weight);
  grad_bias_.add_(grad_bias);
  return grad_x;
}

Linear::Linear(const LayerParameters& parameters, std::size_t first)
    : weight_(parameters.rounded[first]),
      bias_(parameters.values[first + 1]),
      grad_weight_(parameters.gradients[first]),
      grad_bias_(parameters.gradients[first + 1]) {}

at::Tensor Linear::forward(const at::Tensor& x) const {
  // Always a copy: for one row, contiguous() would return the bias itself.
  at::Tensor y = bias_.expand({x.size(0), bias_.size(0)}).clone(at::MemoryFormat::Contiguous);
  add_product(y, x, weight_);
  return y;
}

at::Tensor Linear::forward_onto(const at::Tensor& residual, const at::Tensor& x) const {
  at::Tensor y = at::add(residual, bias_);
  add_product(y, x, weight_);
  return y;
}

at::Tensor Linear::forward_without_bias(const at::Tensor& x) const {
  return product(x, weight_);
}

void Linear::add_gradients(const at::Tensor& x, const at::Tensor& grad_y) {
  add_gradient_product(grad_weight_, x, grad_y, weight_.scalar_type());
  kernels::add_column_sums(grad_y.data_ptr<float>(), grad_bias_.data_ptr<float>(), grad_y.size(0),
                           grad_y.size(1));
}

at::Tensor Linear::input_gradient(const at::Tensor& grad_y) const {
  return product(grad_y, weight_.t());
}

at::Tensor ResidualLinear::forward(const at::Tensor& x,
                                   const at::Tensor& h,
                                   const MicroContext& micro) const {
  if (p_ == 0.0 || !micro.training) return linear_.forward_onto(x, h);
  at::Tensor y = linear_.forward(h);
  dropout_in_place(y, p_, micro, layer_);
  return y.add_(x);
}

at::Tensor ResidualLinear::branch_gradient(const at::Tensor& grad_y,
                                           const MicroContext& micro) const {
  if (p_ == 0.0) return grad_y;
  at::Tensor grad_branch = at::empty_like(grad_y);
  DropoutStream(p_, micro, layer_, DropoutSite::kOutput)
      .apply(grad_y.data_ptr<float>(), grad_branch.data_ptr<float>(), grad_y.numel(), 0);
  return grad_branch;
}

at::Tensor bias_gelu(at::Tensor& u, const at::Tensor& bias) {
  at::Tensor g = at::empty_like(u);
  kernels::bias_gelu(u.data_ptr<float>(), bias.data_ptr<float>(), g.data_ptr<float>(), u.size(0),
                     u.size(1));
  return g;
}

}  // namespace motley
