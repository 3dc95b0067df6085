#include <array>
#include <string_view>
#include <utility>

#include <ATen/ATen.h>

#include "base/check.h"
#include "models/layers/graph_layer.h"
#include "models/layers/layer_parts.h"

namespace motley {
namespace {

void check_parameters(const LayerSpec& spec,
                      const LayerContext& context,
                      const LayerParameters& parameters) {
  const auto check = [&](const std::vector<at::Tensor>& tensors) {
    MOTLEY_CHECK(tensors.size() == spec.parameters.size(), "{}: {} tensors for {} parameters",
                 spec.name, tensors.size(), spec.parameters.size());
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      MOTLEY_CHECK(tensors[i].sizes() == at::IntArrayRef(spec.parameters[i].shape) &&
                       tensors[i].is_contiguous() && tensors[i].scalar_type() == at::kFloat &&
                       tensors[i].device() == context.device,
                   "{} is not a contiguous fp32 tensor of its shape on the layer's device",
                   spec.parameters[i].name);
    }
  };
  check(parameters.values);
  check(parameters.gradients);
}

std::unique_ptr<Layer> make_package_layer(const LayerContext& context, LayerParameters parameters) {
  return make_graph_layer(context.package, context.index, std::move(parameters));
}

std::unique_ptr<LossLayer> make_package_loss(const LayerContext& context,
                                             LayerParameters parameters) {
  return make_graph_loss_layer(context.package, context.index, std::move(parameters));
}

// The constructor of a kind of layer that describe_model names.
template <class Made>
struct Maker {
  using Make = std::unique_ptr<Made> (*)(const LayerContext&, LayerParameters);
  std::string_view kind;
  Make on_cpu;     // in the CPU's kernels
  Make on_device;  // on any other device, in ATen's operations
};

constexpr std::array<Maker<Layer>, 6> kInner = {{
    {"gpt2.embed", make_gpt2_embed, make_device_embed},
    {"gpt2.attn", make_gpt2_attention, make_device_attention},
    {"gpt2.mlp", make_gpt2_mlp, make_device_mlp},
    {"mlp.input", make_mlp_input, make_device_mlp_input},
    {"mlp.hidden", make_mlp_hidden, make_device_mlp_hidden},
    {"package", make_package_layer, make_package_layer},
}};
constexpr std::array<Maker<LossLayer>, 3> kLast = {{
    {"gpt2.head", make_head, make_device_head},
    {"mlp.head", make_head, make_device_head},
    {"package", make_package_loss, make_package_loss},
}};

auto make_by(const auto& makers,
             const LayerSpec& spec,
             const LayerContext& context,
             LayerParameters parameters) {
  check_parameters(spec, context, parameters);
  const bool on_cpu = context.device.is_cpu() && !context.plain_operations;
  for (const auto& maker : makers) {
    if (maker.kind != spec.kind) continue;
    return (on_cpu ? maker.on_cpu : maker.on_device)(context, std::move(parameters));
  }
  MOTLEY_CHECK(false, "a layer of kind '{}' is not allowed here", spec.kind);
}

}  // namespace

std::unique_ptr<Layer> make_layer(const LayerSpec& spec,
                                  const LayerContext& context,
                                  LayerParameters parameters) {
  return make_by(kInner, spec, context, std::move(parameters));
}

std::unique_ptr<LossLayer> make_loss_layer(const LayerSpec& spec,
                                           const LayerContext& context,
                                           LayerParameters parameters) {
  return make_by(kLast, spec, context, std::move(parameters));
}

}  // namespace motley
