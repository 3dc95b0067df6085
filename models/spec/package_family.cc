#include "models/spec/package_family.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <variant>
#include <vector>

#include "models/package/package.h"

namespace motley {
namespace {

// Initial values come from the package; only measurements, which do not read them, draw values.
constexpr InitRule kForMeasuring{InitRule::Kind::kNormal, 0.02};

// For a part of backward in packages that do not specify it: as much as forward, if it computes.
double assumed_flops(const Graph& part, double forward_flops) {
  return part.nodes.empty() ? 0 : forward_flops;
}

// Whether forward saves these values of its own, of which there is at least one.
bool keeps_all(const Graph& forward, const std::vector<ValueId>& values) {
  const auto is_kept = [&](ValueId value) {
    return std::ranges::any_of(forward.gives, [&](const auto& given) {
      return given.first.role == Role::kSaved && given.second == value;
    });
  };
  return !values.empty() && std::ranges::all_of(values, is_kept);
}

std::vector<ValueId> inputs_of(const Graph& forward) {
  std::vector<ValueId> inputs;
  for (std::size_t k = 0; k < forward.takes.size(); ++k) {
    if (forward.takes[k].role == Role::kInput) inputs.push_back({static_cast<int>(k)});
  }
  return inputs;
}

// The value of which this one is a view with other sizes; itself if it is not a view.
ValueId shown_by(const Graph& forward, ValueId value) {
  for (auto node = forward.nodes.rbegin(); node != forward.nodes.rend(); ++node) {
    if (node->first_result != value || node->operation != "aten::view") continue;
    const auto* const source = node->args.empty() ? nullptr : std::get_if<ValueId>(&node->args[0]);
    if (source != nullptr) value = *source;
  }
  return value;
}

std::vector<ValueId> outputs_of(const Graph& forward) {
  std::vector<ValueId> outputs;
  for (const auto& [role, value] : forward.gives) {
    if (role.role == Role::kOutput) outputs.push_back(value);
  }
  return outputs;
}

std::vector<ValueId> shown_by_outputs(const Graph& forward) {
  std::vector<ValueId> shown = outputs_of(forward);
  for (ValueId& value : shown) value = shown_by(forward, value);
  return shown;
}

LayerSpec describe_layer(const PackageLayer& layer, const LayerGraph& graph) {
  LayerSpec spec;
  spec.name = layer.name;
  spec.kind = "package";
  spec.signature = "package " + layer.signature;
  for (const PackageParameter& parameter : layer.parameters) {
    spec.parameters.push_back(
        {parameter.name, parameter.shape, kForMeasuring, parameter.decayed, parameter.tied, {}});
  }
  for (const PackageStatistic& statistic : layer.statistics) {
    spec.parameters.push_back({statistic.name,
                               statistic.shape,
                               {InitRule::Kind::kConstant, 1.0},
                               /*decayed=*/false,
                               /*tied_use=*/false,
                               statistic.momentum});
  }
  for (const PackageConstant& constant : layer.constants) {
    spec.constants.push_back({constant.name, constant.tensor.count(), constant.tensor.bytes()});
  }
  for (const BoundarySpec& output : layer.outputs) {
    if (output.gradient) {
      spec.outputs.push_back(output.shape);
    } else {
      spec.exact_outputs.push_back(output);
    }
  }
  // Several tensors, or exact ones, are packed into one tensor with memory of its own.
  spec.keeps_input = keeps_all(graph.forward, inputs_of(graph.forward));
  spec.keeps_output = layer.outputs.size() == 1 && spec.exact_outputs.empty() &&
                      (keeps_all(graph.forward, outputs_of(graph.forward)) ||
                       keeps_all(graph.forward, shown_by_outputs(graph.forward)));
  spec.forward_flops_per_sample = layer.flops_per_sample;
  spec.input_part_flops_per_sample = layer.input_part_flops_per_sample.value_or(
      assumed_flops(graph.input_part, layer.flops_per_sample));
  spec.weight_part_flops_per_sample = layer.weight_part_flops_per_sample.value_or(
      assumed_flops(graph.weight_part, layer.flops_per_sample));
  return spec;
}

// Whether samples are windows of a sequence of tokens.
bool predicts_next_token(const Package& package) {
  if (package.unit != Package::Unit::kToken || package.inputs.size() != 1) return false;
  const SampleInput& input = package.inputs.front();
  return input.tensor.type == Dtype::kInt64 && input.tensor.shape.size() == 1 &&
         package.target == input.tensor && input.limit == package.target_limit;
}

// The all-reduce of a tied parameter's gradient is between the first and the last stage.
Result<void> check_ties(const ModelSpec& model, const std::string& path) {
  const int last = static_cast<int>(model.layers.size()) - 1;
  int uses = 0;
  std::string elsewhere;
  for (int layer = 0; layer <= last; ++layer) {
    for (const ParameterSpec& parameter :
         model.layers[static_cast<std::size_t>(layer)].parameters) {
      if (!parameter.tied_use) continue;
      ++uses;
      if (layer != last) elsewhere = parameter.name;
    }
  }
  if (uses == 0) return {};
  const auto pair = model.tied_pair();
  if (uses == 1 && elsewhere.empty() && pair->owner_layer == 0) return {};
  return Error{ErrorCode::kConfig, fmt::format("unsupported sharing of parameters, {}", path),
               fmt::format("only one parameter of the first layer may be shared, with the last; "
                           "'{}' is shared differently",
                           elsewhere.empty() ? pair->parameter : elsewhere),
               "merge the layers that share, or export without sharing"};
}

}  // namespace

Result<ModelSpec> describe_package(const ModelConfig& config) {
  MOTLEY_ASSIGN(const std::shared_ptr<const Package> package, read_package(config.path));
  ModelSpec model;
  model.family = "package";
  for (const PackageLayer& layer : package->layers) {
    model.layers.push_back(
        describe_layer(layer, package->graphs[static_cast<std::size_t>(layer.graph)]));
  }
  model.sample = {package->inputs, package->target, package->target_limit,
                  predicts_next_token(*package), package->ignored};
  model.tokens_per_sample = package->units_per_sample;
  model.unit = package->unit == Package::Unit::kToken ? "tokens" : "samples";
  model.package = package;
  MOTLEY_TRY(check_ties(model, config.path));
  return model;
}

LayerMemory package_layer_memory(const ModelSpec& model, int layer, std::int64_t /*value_bytes*/) {
  const Package& package = *model.package;
  const PackageLayer& described = package.layers[static_cast<std::size_t>(layer)];
  const auto& memory = package.graphs[static_cast<std::size_t>(described.graph)].memory;
  std::int64_t parameters = 0;
  for (const PackageParameter& parameter : described.parameters) {
    parameters += TensorSpec{Dtype::kFloat32, parameter.shape}.bytes();
  }
  return {memory.saved_bytes, memory.queued_bytes, memory.workspace_bytes, parameters,
          memory.converted_bytes};
}

}  // namespace motley
