// The layers of the mlp family on any device (models/layers/mlp_layers.cc has them for the CPU).
#include <utility>

#include <ATen/ATen.h>

#include "models/layers/device/device_parts.h"
#include "models/spec/mlp_window.h"

namespace motley {
namespace {

// dropout(gelu(window W + b)), window = the embeddings of the last tokens, oldest first; 0 before
// the start of the sample.
class DeviceInput final : public Layer {
 public:
  DeviceInput(const LayerContext& context, const LayerParameters& parameters)
      : product_dtype_(context.product_dtype),
        embedding_(parameters.rounded[0]),
        grad_embedding_(parameters.gradients[0]),
        linear_(context, parameters, 1),
        p_(context.model.dropout),
        index_(context.index) {}

  at::Tensor forward(at::Tensor tokens, const MicroContext& micro, SavedTensors& saved) override {
    at::Tensor windows = windows_of(tokens);
    at::Tensor u = linear_.forward(windows);
    at::Tensor y = product_dtype_.widened(tanh_gelu(u));
    drop_output_in_place(y, p_, micro, index_);
    y = y.view({tokens.size(0), tokens.size(1), -1});
    if (micro.training) saved = {std::move(tokens), std::move(windows), std::move(u)};
    return y;
  }

  // No layer waits for its result, so the weight part does all expensive work.
  at::Tensor backward_input(at::Tensor grad_output,
                            const MicroContext& micro,
                            SavedTensors& saved) override {
    drop_output_in_place(grad_output, p_, micro, index_);
    saved[2] = tanh_gelu_backward(product_dtype_.scaled(as_matrix(grad_output)), saved[2]);
    return {};
  }

  void backward_weight(SavedTensors& saved) override {
    const SavedTensors kept = std::exchange(saved, {});
    const at::Tensor& tokens = kept[0];
    linear_.add_gradients(kept[1], kept[2]);
    const at::Tensor grad_windows = product_dtype_.unscaled(linear_.input_gradient(kept[2]));
    at::Tensor grad_tokens =
        at::zeros({tokens.size(0), tokens.size(1), embedding_.size(1)}, grad_windows.options());
    for_each_place(grad_windows, tokens, [&](const at::Tensor& place, std::int64_t seen) {
      grad_tokens.narrow(1, 0, seen).add_(place);
    });
    grad_embedding_.index_add_(0, tokens.view({-1}), as_matrix(grad_tokens));
  }

 private:
  at::Tensor windows_of(const at::Tensor& tokens) const {
    const std::int64_t size = embedding_.size(1);
    const at::Tensor rows = at::index_select(embedding_, 0, tokens.view({-1}))
                                .view({tokens.size(0), tokens.size(1), size});
    at::Tensor windows = at::zeros({tokens.numel(), kMlpWindow * size}, embedding_.options());
    for_each_place(windows, tokens, [&](const at::Tensor& place, std::int64_t seen) {
      place.copy_(rows.narrow(1, 0, seen));
    });
    return windows;
  }

  // Visits each slot in the windows of all positions: the tokens `back` positions earlier, which
  // are the first `seen` tokens of each sample. The rest of that slot is before the start.
  template <class Visit>
  void for_each_place(const at::Tensor& windows, const at::Tensor& tokens, Visit visit) const {
    const std::int64_t length = tokens.size(1);
    const at::Tensor places = windows.view({tokens.size(0), length, kMlpWindow, -1});
    for (std::int64_t back = 0; back < kMlpWindow && back < length; ++back) {
      const std::int64_t seen = length - back;
      visit(places.select(2, kMlpWindow - 1 - back).narrow(1, back, seen), seen);
    }
  }

  ProductDtype product_dtype_;
  at::Tensor embedding_;  // rounded
  at::Tensor grad_embedding_;
  DeviceLinear linear_;
  double p_;
  int index_;
};

// x + dropout(gelu(norm(x) W + b)).
class DeviceHidden final : public Layer {
 public:
  DeviceHidden(const LayerContext& context, const LayerParameters& parameters)
      : product_dtype_(context.product_dtype),
        norm_(parameters, 0),
        linear_(context, parameters, 2),
        p_(context.model.dropout),
        index_(context.index) {}

  at::Tensor forward(at::Tensor x, const MicroContext& micro, SavedTensors& saved) override {
    Norm::Output normed = norm_.forward(as_matrix(x));
    normed.y = product_dtype_.rounded(normed.y);
    at::Tensor u = linear_.forward(normed.y);
    at::Tensor y = product_dtype_.widened(tanh_gelu(u));
    drop_output_in_place(y, p_, micro, index_);
    y = y.add_(as_matrix(x)).view_as(x);
    if (micro.training) {
      saved = {std::move(x), normed.mean, normed.inverse_deviation, normed.y, std::move(u)};
    }
    return y;
  }

  at::Tensor backward_input(at::Tensor grad_output,
                            const MicroContext& micro,
                            SavedTensors& saved) override {
    const SavedTensors kept = std::exchange(saved, {});
    at::Tensor grad_y = as_matrix(grad_output);
    at::Tensor grad_branch = grad_y;
    if (p_ != 0.0) {
      grad_branch = grad_y.clone();
      drop_output_in_place(grad_branch, p_, micro, index_);
    }
    at::Tensor grad_u = tanh_gelu_backward(product_dtype_.scaled(grad_branch), kept[4]);
    grad_y.add_(norm_.backward(product_dtype_.unscaled(linear_.input_gradient(grad_u)),
                               as_matrix(kept[0]), kept[1], kept[2]));
    saved = {kept[3], std::move(grad_u)};
    return grad_output;
  }

  void backward_weight(SavedTensors& saved) override {
    const SavedTensors kept = std::exchange(saved, {});
    linear_.add_gradients(kept[0], kept[1]);
  }

 private:
  ProductDtype product_dtype_;
  Norm norm_;
  DeviceLinear linear_;
  double p_;
  int index_;
};

}  // namespace

std::unique_ptr<Layer> make_device_mlp_input(const LayerContext& context,
                                             LayerParameters parameters) {
  return std::make_unique<DeviceInput>(context, parameters);
}

std::unique_ptr<Layer> make_device_mlp_hidden(const LayerContext& context,
                                              LayerParameters parameters) {
  return std::make_unique<DeviceHidden>(context, parameters);
}

}  // namespace motley
