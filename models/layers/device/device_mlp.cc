// GPT-2's MLP on any device: x + dropout(gelu(norm(x) W1 + b1) W2 + b2). The activation is not
// saved: backward recomputes it from its input, which is four times as wide as x.
#include <utility>

#include <ATen/ATen.h>

#include "models/layers/device/device_parts.h"

namespace motley {
namespace {

class DeviceMlp final : public Layer {
 public:
  DeviceMlp(const LayerContext& context, const LayerParameters& parameters)
      : product_dtype_(context.product_dtype),
        norm_(parameters, 0),
        expand_(context, parameters, 2),
        projection_(context, parameters, 4) {}

  at::Tensor forward(at::Tensor x, const MicroContext& micro, SavedTensors& saved) override {
    Norm::Output normed = norm_.forward(as_matrix(x));
    normed.y = product_dtype_.rounded(normed.y);
    at::Tensor u = expand_.forward(normed.y);
    at::Tensor y = projection_.forward(as_matrix(x), tanh_gelu(u), micro).view_as(x);
    if (micro.training) {
      saved = {std::move(x), normed.mean, normed.inverse_deviation, normed.y, std::move(u)};
    }
    return y;
  }

  at::Tensor backward_input(at::Tensor grad_output,
                            const MicroContext& micro,
                            SavedTensors& saved) override {
    SavedTensors kept = std::exchange(saved, {});
    const at::Tensor grad_y = as_matrix(grad_output);
    at::Tensor grad_branch = projection_.branch_gradient(grad_y, micro);
    at::Tensor grad_u =
        tanh_gelu_backward(projection_.linear().input_gradient(grad_branch), kept[4]);
    at::Tensor g = tanh_gelu(std::exchange(kept[4], {}));
    at::Tensor grad_x = norm_.backward(product_dtype_.unscaled(expand_.input_gradient(grad_u)),
                                       as_matrix(kept[0]), kept[1], kept[2]);
    grad_x.add_(grad_y);  // grad_y must not change: without dropout it is grad_branch
    saved = {kept[3], std::move(g), std::move(grad_branch), std::move(grad_u)};
    return grad_x.view_as(grad_output);
  }

  void backward_weight(SavedTensors& saved) override {
    const SavedTensors kept = std::exchange(saved, {});
    projection_.linear().add_gradients(kept[1], kept[2]);
    expand_.add_gradients(kept[0], kept[3]);
  }

 private:
  ProductDtype product_dtype_;
  Norm norm_;
  DeviceLinear expand_;
  DeviceResidualLinear projection_;
};

}  // namespace

std::unique_ptr<Layer> make_device_mlp(const LayerContext& context, LayerParameters parameters) {
  return std::make_unique<DeviceMlp>(context, parameters);
}

}  // namespace motley
