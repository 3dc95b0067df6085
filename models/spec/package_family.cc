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

}  // namespace

Result<ModelSpec> describe_package(const ModelConfig& config) {
  MOTLEY_ASSIGN(const std::shared_ptr<const Package> package, read_package(config.path));
  ModelSpec model;
  model.family = "package";
  for (const PackageLayer& layer : package->layers) model.layers.push_back(describe_layer(layer));
  model.sample = {package->input, package->target, package->input_limit, package->target_limit,
                  predicts_next_token(*package)};
  model.tokens_per_sample = package->units_per_sample;
  model.package = package;
  return model;
}

LayerMemory package_layer_memory(const ModelSpec& model, int layer) {
  const Package& package = *model.package;
  const PackageLayer& described = package.layers[static_cast<std::size_t>(layer)];
  const auto& memory = package.graphs[static_cast<std::size_t>(described.graph)].memory;
  return {memory.saved_bytes, memory.queued_bytes, memory.workspace_bytes};
}

}  // namespace motley
