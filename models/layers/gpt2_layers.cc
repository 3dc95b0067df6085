// GPT-2's embedding and MLP layers.
#include <algorithm>
#include <utility>

#include <ATen/ATen.h>

#include "base/check.h"
#include "models/kernels/kernels.h"
#include "models/layers/layer_parts.h"

namespace motley {
namespace {

// dropout(wte[token] + wpe[position]). Saves the tokens. No layer needs the gradient of its input,
// so the input part adds the gradients of its parameters, of which one may be tied.
class Embed final : public Layer {
 public:
  Embed(const LayerContext& context, LayerParameters parameters)
      : parameters_(std::move(parameters)), p_(context.model.dropout), index_(context.index) {}

  at::Tensor forward(at::Tensor tokens, const MicroContext& micro, SavedTensors& saved) override {
    const std::int64_t width = parameters_.values[0].size(1);
    at::Tensor y =
        at::empty({tokens.size(0), tokens.size(1), width}, parameters_.values[0].options());
    const auto* token_rows = parameters_.values[0].data_ptr<float>();
    const auto* position_rows = parameters_.values[1].data_ptr<float>();
    auto* out = y.data_ptr<float>();
    for_each_token(tokens, [&](std::int64_t token, std::int64_t position) {
      std::copy_n(token_rows + token * width, width, out);
      kernels::add_row(position_rows + position * width, out, width);
      out += width;
    });
    dropout_in_place(y, p_, micro, index_);
    if (micro.training) saved = {std::move(tokens)};
    return y;
  }

  at::Tensor backward_input(at::Tensor grad_output,
                            const MicroContext& micro,
                            SavedTensors& saved) override {
    dropout_in_place(grad_output, p_, micro, index_);
    const at::Tensor tokens = std::exchange(saved, {})[0];
    const std::int64_t width = grad_output.size(-1);
    auto* token_rows = parameters_.gradients[0].data_ptr<float>();
    auto* position_rows = parameters_.gradients[1].data_ptr<float>();
    const auto* grad = grad_output.data_ptr<float>();
    for_each_token(tokens, [&](std::int64_t token, std::int64_t position) {
      kernels::add_row(grad, token_rows + token * width, width);
      kernels::add_row(grad, position_rows + position * width, width);
      grad += width;
    });
    return {};
  }

  void backward_weight(SavedTensors& /*saved*/) override {}

 private:
  // In the order of samples and positions, so that sums have one order.
  template <class Visit>
  void for_each_token(const at::Tensor& tokens, Visit visit) const {
    const std::int64_t vocab = parameters_.values[0].size(0);
    const auto* ids = tokens.data_ptr<std::int64_t>();
    MOTLEY_CHECK(tokens.size(1) <= parameters_.values[1].size(0), "{} tokens", tokens.size(1));
    for (std::int64_t i = 0; i < tokens.numel(); ++i) {
      MOTLEY_CHECK(ids[i] >= 0 && ids[i] < vocab, "token {} of {}", ids[i], vocab);
      visit(ids[i], i % tokens.size(1));
    }
  }

  LayerParameters parameters_;
  double p_;
  int index_;
};

// x + dropout(gelu(norm(x) W1 + b1) W2 + b2). The activation is not saved: backward computes it
// from its input at no extra cost (kernels::gelu_backward).
class Mlp final : public Layer {
 public:
  Mlp(const LayerContext& context, const LayerParameters& parameters)
      : norm_(parameters, 0),
        expand_(parameters, 2),
        projection_(parameters, 4, context.model.dropout, context.index) {}

  at::Tensor forward(at::Tensor x, const MicroContext& micro, SavedTensors& saved) override {
    Norm::Output normed = norm_.forward(as_matrix(x));
    at::Tensor u = expand_.forward_without_bias(normed.y);
    const at::Tensor g = bias_gelu(u, expand_.bias());
    at::Tensor y = projection_.forward(as_matrix(x), g, micro).view_as(x);
    if (micro.training) {
      saved = {std::move(x), normed.mean, normed.inverse_deviation, normed.y, std::move(u)};
    }
    return y;
  }

  at::Tensor backward_input(at::Tensor grad_output,
                            const MicroContext& micro,
                            SavedTensors& saved) override {
    const SavedTensors kept = std::exchange(saved, {});
    const at::Tensor& x = kept[0];
    const at::Tensor& normed = kept[3];
    const at::Tensor& u = kept[4];
    const at::Tensor grad_y = as_matrix(grad_output);
    at::Tensor grad_branch = projection_.branch_gradient(grad_y, micro);
    at::Tensor grad_u = projection_.linear().input_gradient(grad_branch);
    kernels::gelu_backward(u.data_ptr<float>(), grad_u.data_ptr<float>(), u.numel());
    at::Tensor grad_x =
        norm_.backward(expand_.input_gradient(grad_u), as_matrix(x), kept[1], kept[2]);
    grad_x.add_(grad_y);  // grad_y must not change: without dropout it is grad_branch
    saved = {normed, u, std::move(grad_branch), std::move(grad_u)};
    return grad_x.view_as(grad_output);
  }

  void backward_weight(SavedTensors& saved) override {
    const SavedTensors kept = std::exchange(saved, {});
    projection_.linear().add_gradients(kept[1], kept[2]);  // u holds gelu(u) since the input part
    expand_.add_gradients(kept[0], kept[3]);
  }

 private:
  Norm norm_;
  Linear expand_;
  ResidualLinear projection_;
};

}  // namespace

std::unique_ptr<Layer> make_gpt2_embed(const LayerContext& context, LayerParameters parameters) {
  return std::make_unique<Embed>(context, std::move(parameters));
}

std::unique_ptr<Layer> make_gpt2_mlp(const LayerContext& context, LayerParameters parameters) {
  return std::make_unique<Mlp>(context, parameters);
}

}  // namespace motley
