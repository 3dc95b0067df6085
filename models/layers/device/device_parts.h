// Parts that the layers for any device share: those of models/layers/layer_parts.h in ATen
// operations alone. Norm is used by both. Private to models/.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "models/layers/layer_parts.h"

namespace motley {

// Applies one dropout site to the whole of x (contiguous), in place. Does nothing if p is 0 or the
// micro-batch is not for training.
void drop_output_in_place(const at::Tensor& x, double p, const MicroContext& micro, int layer);

// GELU in its tanh form, and the gradient of its input from that of its output.
[[nodiscard]] at::Tensor tanh_gelu(const at::Tensor& u);
[[nodiscard]] at::Tensor tanh_gelu_backward(const at::Tensor& grad, const at::Tensor& u);

// The length of a row of scores for a vocabulary of `vocab` tokens: whole cache lines. bf16
// products of matrices with rows of an odd length (GPT-2 has 50,257 tokens) take an H100 seven
// times as long.
[[nodiscard]] std::int64_t score_row(std::int64_t vocab);

// y = x W + b with W stored [in, out]. Its inputs and outputs are rounded, and gradients are scaled
// (ProductDtype); the parameters' gradients are not.
class DeviceLinear {
 public:
  DeviceLinear(const LayerContext& context, const LayerParameters& parameters, std::size_t first);

  [[nodiscard]] at::Tensor forward(const at::Tensor& x) const;
  void add_gradients(const at::Tensor& x, const at::Tensor& grad_y) const;
  [[nodiscard]] at::Tensor input_gradient(const at::Tensor& grad_y) const;

 private:
  ProductDtype product_dtype_;
  at::Tensor weight_, bias_, grad_weight_, grad_bias_;
};

// x + dropout(h W + b): the end of each residual branch. x and the sum are fp32, h is rounded.
class DeviceResidualLinear {
 public:
  DeviceResidualLinear(const LayerContext& context,
                       const LayerParameters& parameters,
                       std::size_t first)
      : product_dtype_(context.product_dtype),
        linear_(context, parameters, first),
        p_(context.model.dropout),
        layer_(context.index) {}

  [[nodiscard]] at::Tensor forward(const at::Tensor& x,
                                   const at::Tensor& h,
                                   const MicroContext& micro) const;
  // The gradient of h W + b, scaled; grad_y, which is also that of x, is left as it is.
  [[nodiscard]] at::Tensor branch_gradient(const at::Tensor& grad_y,
                                           const MicroContext& micro) const;

  [[nodiscard]] const DeviceLinear& linear() const { return linear_; }

 private:
  ProductDtype product_dtype_;
  DeviceLinear linear_;
  double p_;
  int layer_;
};

}  // namespace motley
