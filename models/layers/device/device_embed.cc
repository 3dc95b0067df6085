// GPT-2's embedding on any device: dropout(wte[token] + wpe[position]). Saves the tokens.
//
// The operations that take tokens check that they are in the vocabulary: a check here would wait
// for the device.
#include <utility>

#include <ATen/ATen.h>

#include "base/check.h"
#include "models/layers/device/device_parts.h"

namespace motley {
namespace {

class DeviceEmbed final : public Layer {
 public:
  DeviceEmbed(const LayerContext& context, LayerParameters parameters)
      : parameters_(std::move(parameters)), p_(context.model.dropout), index_(context.index) {}

  at::Tensor forward(at::Tensor tokens, const MicroContext& micro, SavedTensors& saved) override {
    const std::int64_t length = tokens.size(1);
    MOTLEY_CHECK(length <= parameters_.values[1].size(0), "{} tokens", length);
    at::Tensor y = at::index_select(parameters_.values[0], 0, tokens.view({-1}))
                       .view({tokens.size(0), length, -1});
    y.add_(parameters_.values[1].narrow(0, 0, length));
    drop_output_in_place(y, p_, micro, index_);
    if (micro.training) saved = {std::move(tokens)};
    return y;
  }

  // No layer needs the gradient of its input, so the input part adds the gradients of its
  // parameters, of which one may be tied.
  at::Tensor backward_input(at::Tensor grad_output,
                            const MicroContext& micro,
                            SavedTensors& saved) override {
    drop_output_in_place(grad_output, p_, micro, index_);
    const at::Tensor tokens = std::exchange(saved, {})[0];
    parameters_.gradients[0].index_add_(0, tokens.view({-1}), as_matrix(grad_output));
    parameters_.gradients[1].narrow(0, 0, tokens.size(1)).add_(grad_output.sum(0));
    return {};
  }

  void backward_weight(SavedTensors& /*saved*/) override {}

 private:
  LayerParameters parameters_;
  double p_;
  int index_;
};

}  // namespace

std::unique_ptr<Layer> make_device_embed(const LayerContext& context, LayerParameters parameters) {
  return std::make_unique<DeviceEmbed>(context, std::move(parameters));
}

}  // namespace motley
