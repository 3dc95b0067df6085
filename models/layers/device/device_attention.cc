// The attention half of a gpt2 block on any device: a norm, queries, keys and values, causal
// attention on one of its paths (attention_core.h), and the end of the residual branch.
#include <algorithm>
#include <iterator>
#include <utility>

#include <ATen/ATen.h>

#include "models/layers/device/attention_core.h"
#include "models/layers/device/device_parts.h"

namespace motley {
namespace {

// Saved tensors, in order; those of the path follow.
enum DeviceSaved : std::size_t {
  kDeviceX,
  kDeviceMean,
  kDeviceDeviation,
  kDeviceNormed,
  kDeviceQkv,
  kDeviceHeads,
  kDeviceKept
};

class DeviceAttention final : public Layer {
 public:
  DeviceAttention(const LayerContext& context, const LayerParameters& parameters)
      : context_(context),
        norm_(parameters, 0),
        qkv_(context, parameters, 2),
        projection_(context, parameters, 4) {}

  at::Tensor forward(at::Tensor x, const MicroContext& micro, SavedTensors& saved) override {
    Norm::Output normed = norm_.forward(as_matrix(x));
    normed.y = context_.product_dtype.rounded(normed.y);
    at::Tensor qkv = qkv_.forward(normed.y);
    if (core_ == nullptr) core_ = make_attention_core(context_, context_.product_dtype.type());
    SavedTensors kept;
    at::Tensor heads = core_->forward(qkv, x.size(1), micro, kept);
    at::Tensor y = projection_.forward(as_matrix(x), heads, micro).view_as(x);
    if (micro.training) {
      saved = {std::move(x), normed.mean,    normed.inverse_deviation,
               normed.y,     std::move(qkv), std::move(heads)};
      std::ranges::move(kept, std::back_inserter(saved));
    }
    return y;
  }

  at::Tensor backward_input(at::Tensor grad_output,
                            const MicroContext& micro,
                            SavedTensors& saved) override {
    SavedTensors kept = std::exchange(saved, {});
    const at::Tensor grad_y = as_matrix(grad_output);
    at::Tensor grad_branch = projection_.branch_gradient(grad_y, micro);
    at::Tensor grad_qkv = core_->backward(projection_.linear().input_gradient(grad_branch),
                                          kept[kDeviceQkv], kept[kDeviceHeads], grad_output.size(1),
                                          micro, {kept.begin() + kDeviceKept, kept.end()});
    at::Tensor grad_x =
        norm_.backward(context_.product_dtype.unscaled(qkv_.input_gradient(grad_qkv)),
                       as_matrix(kept[kDeviceX]), kept[kDeviceMean], kept[kDeviceDeviation]);
    grad_x.add_(grad_y);  // grad_y must not change: without dropout it is grad_branch
    saved = {kept[kDeviceNormed], kept[kDeviceHeads], std::move(grad_branch), std::move(grad_qkv)};
    return grad_x.view_as(grad_output);
  }

  void backward_weight(SavedTensors& saved) override {
    const SavedTensors kept = std::exchange(saved, {});
    projection_.linear().add_gradients(kept[1], kept[2]);
    qkv_.add_gradients(kept[0], kept[3]);
  }

 private:
  const LayerContext context_;
  Norm norm_;
  DeviceLinear qkv_;
  DeviceResidualLinear projection_;
  std::unique_ptr<AttentionCore> core_;  // made by the first forward
};

}  // namespace

std::unique_ptr<Layer> make_device_attention(const LayerContext& context,
                                             LayerParameters parameters) {
  return std::make_unique<DeviceAttention>(context, parameters);
}

}  // namespace motley
