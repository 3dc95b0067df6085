#include <array>
#include <string_view>
#include <utility>

#include <ATen/ATen.h>

#include "base/check.h"
#include "models/layers/graph_layer.h"
#include "models/layers/layer_parts.h"

namespace motley {
namespace {

void check_parameters(const LayerSpec& spec, const LayerParameters& parameters) {
  const auto check = [&](const std::vector<at::Tensor>& tensors) {
    MOTLEY_CHECK(tensors.size() == spec.parameters.size(), "{}: {} tensors for {} parameters",
                 spec.name, tensors.size(), spec.parameters.size());
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      MOTLEY_CHECK(tensors[i].sizes() == at::IntArrayRef(spec.parameters[i].shape) &&
                       tensors[i].is_contiguous() && tensors[i].scalar_type() == at::kFloat,
                   "{} is not a contiguous fp32 tensor of its shape", spec.parameters[i].name);
    }
  };
  check(parameters.values);
  check(parameters.gradients);
}

std::unique_ptr<Layer> make_package_layer(const LayerContext& context,
                                          LayerParameters parameters) {
  return make_graph_layer(context.package, context.index, std::move(parameters));
}

std::unique_ptr<LossLayer> make_package_loss(const LayerContext& context,
                                             LayerParameters parameters) {
  return make_graph_loss_layer(context.package, context.index, std::move(parameters));
}

using MakeLayer = std::unique_ptr<Layer> (*)(const LayerContext&, LayerParameters);
using MakeLossLayer = std::unique_ptr<LossLayer> (*)(const LayerContext&, LayerParameters);

// What each kind of layer that describe_model names is made by.
constexpr std::array<std::pair<std::string_view, MakeLayer>, 6> kInner = {{
    {"gpt2.embed", make_gpt2_embed},
    {"gpt2.attn", make_gpt2_attention},
    {"gpt2.mlp", make_gpt2_mlp},
    {"mlp.input", make_mlp_input},
    {"mlp.hidden", make_mlp_hidden},
    {"package", make_package_layer},
}};
constexpr std::array<std::pair<std::string_view, MakeLossLayer>, 3> kLast = {{
    {"gpt2.head", make_head},
    {"mlp.head", make_head},
    {"package", make_package_loss},
}};

auto maker_of(const auto& makers, const std::string& kind) {
  for (const auto& [name, make] : makers) {
    if (name == kind) return make;
  }
  MOTLEY_CHECK(false, "a layer of kind '{}' does not stand here", kind);
}

}  // namespace

std::unique_ptr<Layer> make_layer(const LayerSpec& spec,
                                  const LayerContext& context,
                                  LayerParameters parameters) {
  check_parameters(spec, parameters);
  return maker_of(kInner, spec.kind)(context, std::move(parameters));
}

std::unique_ptr<LossLayer> make_loss_layer(const LayerSpec& spec,
                                           const LayerContext& context,
                                           LayerParameters parameters) {
  check_parameters(spec, parameters);
  return maker_of(kLast, spec.kind)(context, std::move(parameters));
}

}  // namespace motley
