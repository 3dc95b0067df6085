#include "models/layers/device/device_parts.h"

#include <ATen/ATen.h>

#include "models/layers/tensor_dropout.h"

namespace motley {

void drop_output_in_place(const at::Tensor& x, double p, const MicroContext& micro, int layer) {
  if (p == 0.0 || !micro.training) return;
  drop_in_place(DropoutStream(p, micro, layer, DropoutSite::kOutput), x);
}

at::Tensor tanh_gelu(const at::Tensor& u) {
  return at::gelu(u, "tanh");
}

at::Tensor tanh_gelu_backward(const at::Tensor& grad, const at::Tensor& u) {
  return at::gelu_backward(grad, u, "tanh");
}

std::int64_t score_row(std::int64_t vocab) {
  constexpr std::int64_t kMultiple = 64;  // 128 bytes in bf16 and fp16
  return (vocab + kMultiple - 1) / kMultiple * kMultiple;
}

DeviceLinear::DeviceLinear(const LayerContext& context,
                           const LayerParameters& parameters,
                           std::size_t first)
    : product_dtype_(context.product_dtype),
      weight_(parameters.rounded[first]),
      bias_(parameters.rounded[first + 1]),
      grad_weight_(parameters.gradients[first]),
      grad_bias_(parameters.gradients[first + 1]) {}

at::Tensor DeviceLinear::forward(const at::Tensor& x) const {
  return at::addmm(bias_, x, weight_);
}

void DeviceLinear::add_gradients(const at::Tensor& x, const at::Tensor& grad_y) const {
  product_dtype_.add_product(grad_weight_, x.t(), grad_y);
  product_dtype_.add_scaled(grad_bias_, grad_y.sum(0, /*keepdim=*/false, at::kFloat));
}

at::Tensor DeviceLinear::input_gradient(const at::Tensor& grad_y) const {
  return at::mm(grad_y, weight_.t());
}

at::Tensor DeviceResidualLinear::forward(const at::Tensor& x,
                                         const at::Tensor& h,
                                         const MicroContext& micro) const {
  at::Tensor y = linear_.forward(h);
  if (p_ == 0.0 || !micro.training) return at::add(x, y);  // the addition is in fp32 and widens y
  y = product_dtype_.widened(y);
  drop_output_in_place(y, p_, micro, layer_);
  return y.add_(x);
}

at::Tensor DeviceResidualLinear::branch_gradient(const at::Tensor& grad_y,
                                                 const MicroContext& micro) const {
  if (p_ == 0.0) return product_dtype_.scaled(grad_y);
  at::Tensor grad_branch = grad_y.clone();
  drop_output_in_place(grad_branch, p_, micro, layer_);
  return product_dtype_.scaled(grad_branch);
}

}  // namespace motley
