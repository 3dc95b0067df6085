// The layers of the mlp family (models/spec/model_spec.cc describes it).
#include <algorithm>
#include <utility>

#include <ATen/ATen.h>

#include "base/check.h"
#include "models/kernels/kernels.h"
#include "models/layers/layer_parts.h"
#include "models/spec/mlp_window.h"

namespace motley {
namespace {

// dropout(gelu(window W + b)), window = the embeddings of the last tokens, oldest first.
class Input final : public Layer {
 public:
  Input(const LayerContext& context, const LayerParameters& parameters)
      : embedding_(parameters.values[0]),
        grad_embedding_(parameters.gradients[0]),
        linear_(parameters, 1),
        p_(context.model.dropout),
        index_(context.index) {}

  at::Tensor forward(at::Tensor tokens, const MicroContext& micro, SavedTensors& saved) override {
    const std::int64_t size = embedding_.size(1);
    at::Tensor windows = at::zeros({tokens.numel(), kMlpWindow * size}, embedding_.options());
    auto* out = windows.data_ptr<float>();
    const auto* rows = embedding_.data_ptr<float>();
    for_each_seen(tokens, [&](std::int64_t token, std::int64_t place) {
      std::copy_n(rows + token * size, size, out + place * size);
    });
    at::Tensor u = linear_.forward_without_bias(windows);
    at::Tensor y = bias_gelu(u, linear_.bias());
    dropout_in_place(y, p_, micro, index_);
    y = y.view({tokens.size(0), tokens.size(1), -1});
    if (micro.training) saved = {std::move(tokens), std::move(windows), std::move(u)};
    return y;
  }

  // No layer waits for its result, so the weight part does all expensive work.
  at::Tensor backward_input(at::Tensor grad_output,
                            const MicroContext& micro,
                            SavedTensors& saved) override {
    const at::Tensor u = saved[2];
    at::Tensor grad_u = as_matrix(grad_output);
    dropout_in_place(grad_u, p_, micro, index_);
    kernels::gelu_backward(u.data_ptr<float>(), grad_u.data_ptr<float>(), u.numel());
    saved[2] = std::move(grad_u);
    return {};
  }

  void backward_weight(SavedTensors& saved) override {
    const SavedTensors kept = std::exchange(saved, {});
    const at::Tensor& grad_u = kept[2];
    linear_.add_gradients(kept[1], grad_u);
    const at::Tensor grad_windows = linear_.input_gradient(grad_u);
    const std::int64_t size = embedding_.size(1);
    const auto* grad = grad_windows.data_ptr<float>();
    auto* rows = grad_embedding_.data_ptr<float>();
    for_each_seen(kept[0], [&](std::int64_t token, std::int64_t place) {
      kernels::add_row(grad + place * size, rows + token * size, size);
    });
  }

 private:
  // Visits (token, place) for each token in each position's window; `place` counts the slots of all
  // windows. Slots before the start of a sample are not visited.
  template <class Visit>
  void for_each_seen(const at::Tensor& tokens, Visit visit) const {
    const std::int64_t vocab = embedding_.size(0);
    const std::int64_t length = tokens.size(1);
    const auto* ids = tokens.data_ptr<std::int64_t>();
    for (std::int64_t i = 0; i < tokens.numel(); ++i) {
      MOTLEY_CHECK(ids[i] >= 0 && ids[i] < vocab, "token {} of {}", ids[i], vocab);
      const std::int64_t seen = std::min<std::int64_t>(i % length + 1, kMlpWindow);
      for (std::int64_t back = seen - 1; back >= 0; --back) {
        visit(ids[i - back], (i + 1) * kMlpWindow - 1 - back);
      }
    }
  }

  at::Tensor embedding_;
  at::Tensor grad_embedding_;
  Linear linear_;
  double p_;
  int index_;
};

// x + dropout(gelu(norm(x) W + b)).
class Hidden final : public Layer {
 public:
  Hidden(const LayerContext& context, const LayerParameters& parameters)
      : norm_(parameters, 0),
        linear_(parameters, 2),
        p_(context.model.dropout),
        index_(context.index) {}

  at::Tensor forward(at::Tensor x, const MicroContext& micro, SavedTensors& saved) override {
    Norm::Output normed = norm_.forward(as_matrix(x));
    at::Tensor u = linear_.forward_without_bias(normed.y);
    at::Tensor y = bias_gelu(u, linear_.bias());
    dropout_in_place(y, p_, micro, index_);
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
    const at::Tensor& u = kept[4];
    at::Tensor grad_y = as_matrix(grad_output);
    at::Tensor grad_u = grad_y.clone();
    dropout_in_place(grad_u, p_, micro, index_);
    kernels::gelu_backward(u.data_ptr<float>(), grad_u.data_ptr<float>(), u.numel());
    grad_y.add_(
        norm_.backward(linear_.input_gradient(grad_u), as_matrix(kept[0]), kept[1], kept[2]));
    saved = {kept[3], std::move(grad_u)};
    return grad_output;
  }

  void backward_weight(SavedTensors& saved) override {
    const SavedTensors kept = std::exchange(saved, {});
    linear_.add_gradients(kept[0], kept[1]);
  }

 private:
  Norm norm_;
  Linear linear_;
  double p_;
  int index_;
};

}  // namespace

std::unique_ptr<Layer> make_mlp_input(const LayerContext& context, LayerParameters parameters) {
  return std::make_unique<Input>(context, parameters);
}

std::unique_ptr<Layer> make_mlp_hidden(const LayerContext& context, LayerParameters parameters) {
  return std::make_unique<Hidden>(context, parameters);
}

}  // namespace motley
