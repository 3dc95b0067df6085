#include "models/spec/package_family.h"

#include <fmt/format.h>

#include <utility>

#include "models/package/package.h"

namespace motley {
namespace {

// First values come from the package; only what is measured without them draws its own.
constexpr InitRule kForMeasuring{InitRule::Kind::kNormal, 0.02};

LayerSpec describe_layer(const PackageLayer& layer) {
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
  for (const TensorSpec& output : layer.outputs) spec.outputs.push_back(output.shape);
  spec.forward_flops_per_sample = layer.flops_per_sample;
  return spec;
}

// Whether samples are windows of a row of tokens.
bool predicts_next_token(const Package& package) {
  return package.unit == Package::Unit::kToken && package.input.type == NumberType::kInt64 &&
         package.input.shape.size() == 1 && package.target == package.input &&
         package.input_limit == package.target_limit;
}

// The sum of a tied parameter's gradients goes between the first and the last stage.
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
  return Error{ErrorCode::kConfig,
               fmt::format("layers share parameters in a way that is not supported, {}", path),
               fmt::format("only one parameter of the first layer may be used again, in the last; "
                           "'{}' is shared otherwise",
                           elsewhere.empty() ? pair->parameter : elsewhere),
               "put the layers that share into one, or export without sharing"};
}

}  // namespace

Result<ModelSpec> describe_package(const ModelConfig& config) {
  MOTLEY_ASSIGN(const std::shared_ptr<const Package> package, read_package(config.path));
  ModelSpec model;
  model.family = "package";
  for (const PackageLayer& layer : package->layers) model.layers.push_back(describe_layer(layer));
  model.sample = {package->input,
                  package->target,
                  package->input_limit,
                  package->target_limit,
                  predicts_next_token(*package),
                  package->ignored};
  model.tokens_per_sample = package->units_per_sample;
  model.unit = package->unit == Package::Unit::kToken ? "tokens" : "samples";
  model.package = package;
  MOTLEY_TRY(check_ties(model, config.path));
  return model;
}

LayerMemory package_layer_memory(const ModelSpec& model, int layer) {
  const Package& package = *model.package;
  const PackageLayer& described = package.layers[static_cast<std::size_t>(layer)];
  const auto& memory = package.graphs[static_cast<std::size_t>(described.graph)].memory;
  return {memory.saved_bytes, memory.queued_bytes, memory.workspace_bytes};
}

}  // namespace motley
