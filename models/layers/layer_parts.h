// Parts that several layers share. Private to models/.
//
// Each part holds its parameters and gradients; the layer saves what it needs for backward.
// Matrices are [rows, columns] with rows = B * T.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "models/layers/dropout.h"
#include "models/layers/layer.h"

namespace motley {

// x_BTD as a matrix of B * T rows; shares memory.
[[nodiscard]] at::Tensor as_matrix(const at::Tensor& x);

// Applies one dropout site to the whole of x (contiguous), in place. Does nothing if p is 0 or the
// micro-batch is not for training.
void dropout_in_place(at::Tensor& x, double p, const MicroContext& micro, int layer);

// The ranks of targets_N among the rows of scores_NC, in ATen operations (models/kernels/kernels.h,
// target_ranks). REQUIRES: 0 <= target < C.
[[nodiscard]] at::Tensor ranks_of(const at::Tensor& scores, const at::Tensor& targets);

// Of two tensors with one number each and, in evaluation, the rank of each target's score (an
// undefined tensor in training).
[[nodiscard]] LossTotals loss_totals(const at::Tensor& loss_sum,
                                     const at::Tensor& count,
                                     const at::Tensor& ranks);
// LossLayer::read of such totals.
[[nodiscard]] LossLayer::Outcome predicted_outcome(const at::Tensor& host_totals,
                                                   std::int64_t classes);
// LossLayer::read, for layers with valid counts.
[[nodiscard]] LossLayer::Outcome outcome_of(const at::Tensor& host_totals);

// Layer normalisation over the last dimension.
class Norm {
 public:
  // `first`: the index of its weight among the parameters; the bias follows.
  Norm(const LayerParameters& parameters, std::size_t first);

  struct Output {
    at::Tensor y;
    at::Tensor mean;
    at::Tensor inverse_deviation;
  };

  [[nodiscard]] Output forward(const at::Tensor& x) const;
  // Returns the gradient of x.
  [[nodiscard]] at::Tensor backward(const at::Tensor& grad_y,
                                    const at::Tensor& x,
                                    const at::Tensor& mean,
                                    const at::Tensor& inverse_deviation);

 private:
  at::Tensor weight_, bias_, grad_weight_, grad_bias_;
};

// y = x W + b with W stored [in, out]. All inputs and outputs are fp32; the product itself may use
// bf16 (models/kernels/matrix_product.h).
class Linear {
 public:
  Linear(const LayerParameters& parameters, std::size_t first);

  [[nodiscard]] at::Tensor forward(const at::Tensor& x) const;
  // residual + x W + b; the bias and the residual are added in one pass.
  [[nodiscard]] at::Tensor forward_onto(const at::Tensor& residual, const at::Tensor& x) const;
  // x W alone, for kernels that add the bias.
  [[nodiscard]] at::Tensor forward_without_bias(const at::Tensor& x) const;

  [[nodiscard]] const at::Tensor& bias() const { return bias_; }

  void add_gradients(const at::Tensor& x, const at::Tensor& grad_y);
  [[nodiscard]] at::Tensor input_gradient(const at::Tensor& grad_y) const;

 private:
  at::Tensor weight_;  // rounded
  at::Tensor bias_, grad_weight_, grad_bias_;
};

// x + dropout(h W + b): the end of each residual branch.
class ResidualLinear {
 public:
  ResidualLinear(const LayerParameters& parameters, std::size_t first, double p, int layer)
      : linear_(parameters, first), p_(p), layer_(layer) {}

  [[nodiscard]] at::Tensor forward(const at::Tensor& x,
                                   const at::Tensor& h,
                                   const MicroContext& micro) const;
  // The gradient of h W + b; does not change grad_y, which is also the gradient of x.
  [[nodiscard]] at::Tensor branch_gradient(const at::Tensor& grad_y,
                                           const MicroContext& micro) const;

  [[nodiscard]] Linear& linear() { return linear_; }

 private:
  Linear linear_;
  double p_;
  int layer_;
};

// u += bias, and returns gelu(u).
[[nodiscard]] at::Tensor bias_gelu(at::Tensor& u, const at::Tensor& bias);

[[nodiscard]] std::unique_ptr<Layer> make_gpt2_embed(const LayerContext&, LayerParameters);
[[nodiscard]] std::unique_ptr<Layer> make_gpt2_attention(const LayerContext&, LayerParameters);
[[nodiscard]] std::unique_ptr<Layer> make_gpt2_mlp(const LayerContext&, LayerParameters);
[[nodiscard]] std::unique_ptr<Layer> make_mlp_input(const LayerContext&, LayerParameters);
[[nodiscard]] std::unique_ptr<Layer> make_mlp_hidden(const LayerContext&, LayerParameters);
[[nodiscard]] std::unique_ptr<LossLayer> make_head(const LayerContext&, LayerParameters);

// The same for any device (models/layers/device).
[[nodiscard]] std::unique_ptr<Layer> make_device_embed(const LayerContext&, LayerParameters);
[[nodiscard]] std::unique_ptr<Layer> make_device_attention(const LayerContext&, LayerParameters);
[[nodiscard]] std::unique_ptr<Layer> make_device_mlp(const LayerContext&, LayerParameters);
[[nodiscard]] std::unique_ptr<Layer> make_device_mlp_input(const LayerContext&, LayerParameters);
[[nodiscard]] std::unique_ptr<Layer> make_device_mlp_hidden(const LayerContext&, LayerParameters);
[[nodiscard]] std::unique_ptr<LossLayer> make_device_head(const LayerContext&, LayerParameters);

}  // namespace motley
