#include <utility>

#include <ATen/ATen.h>

#include "base/check.h"
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

}  // namespace

std::unique_ptr<Layer> make_layer(const LayerSpec& spec,
                                  const LayerContext& context,
                                  LayerParameters parameters) {
  check_parameters(spec, parameters);
  if (spec.kind == "gpt2.embed") return make_gpt2_embed(context, std::move(parameters));
  if (spec.kind == "gpt2.attn") return make_gpt2_attention(context, std::move(parameters));
  if (spec.kind == "gpt2.mlp") return make_gpt2_mlp(context, std::move(parameters));
  if (spec.kind == "mlp.input") return make_mlp_input(context, std::move(parameters));
  if (spec.kind == "mlp.hidden") return make_mlp_hidden(context, std::move(parameters));
  MOTLEY_CHECK(false, "{} is not an inner layer", spec.kind);
}

std::unique_ptr<LossLayer> make_loss_layer(const LayerSpec& spec,
                                           const LayerContext& context,
                                           LayerParameters parameters) {
  check_parameters(spec, parameters);
  MOTLEY_CHECK(spec.kind == "gpt2.head" || spec.kind == "mlp.head", "{} is not a head", spec.kind);
  return make_head(context, std::move(parameters));
}

}  // namespace motley
