#include "models/graph/prepared_package.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

#include <ATen/ATen.h>

#include "base/check.h"
#include "checkpoint/safetensors.h"
#include "models/graph/scalar_type.h"

namespace motley {
namespace {

Result<GraphRunner> make_runner(const Graph& graph,
                                const PackageLayer& layer,
                                const char* part,
                                c10::Device device,
                                at::ScalarType products) {
  return GraphRunner::make(graph, fmt::format("layer '{}', {}", excerpt(layer.name), part), device,
                           products);
}

// As its own type: what is computed of a narrow one is float32 or int64 only while it is used.
Result<at::Tensor> read_constant(const SafetensorsFile& file, const PackageConstant& constant) {
  const auto& [type, shape] = constant.tensor;
  const bool is_bool = type == Dtype::kBool;
  at::Tensor tensor = at::empty(shape, is_bool ? at::kByte : scalar_type(type));
  const std::span bytes(static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes());
  MOTLEY_TRY(file.read_bytes(constant.name, stored_dtype(type), shape, bytes));
  return is_bool ? tensor.ne(0) : tensor;  // only the bytes 0 and 1 are valid bools
}

}  // namespace

PreparedPackage::PreparedPackage(std::shared_ptr<const Package> package,
                                 c10::Device device,
                                 at::ScalarType products)
    : package_(std::move(package)), device_(device), products_(products) {}

Result<std::shared_ptr<PreparedPackage>> PreparedPackage::prepare(
    std::shared_ptr<const Package> package,
    int first,
    int last,
    c10::Device device,
    at::ScalarType products) {
  const int layers = static_cast<int>(package->layers.size());
  MOTLEY_CHECK(0 <= first && first <= last && last <= layers, "layers [{}, {}) of {}", first, last,
               layers);
  const std::shared_ptr<PreparedPackage> prepared(
      new PreparedPackage(std::move(package), device, products));
  for (int l = first; l < last; ++l) {
    MOTLEY_TRY(prepared->prepare_layer(prepared->package_->layers[static_cast<std::size_t>(l)]));
  }
  MOTLEY_TRY(prepared->read_constants(first, last));
  return prepared;
}

Result<void> PreparedPackage::prepare_layer(const PackageLayer& layer) {
  if (runners_.contains(layer.graph)) return {};
  const LayerGraph& graph = package_->graphs[static_cast<std::size_t>(layer.graph)];
  const auto runner = [&](const Graph& part, const char* name) {
    return make_runner(part, layer, name, device_, products_);
  };
  MOTLEY_ASSIGN(GraphRunner forward, runner(graph.forward, "forward"));
  MOTLEY_ASSIGN(GraphRunner input_part, runner(graph.input_part, "input part of backward"));
  MOTLEY_ASSIGN(GraphRunner weight_part, runner(graph.weight_part, "weight part of backward"));
  MOTLEY_ASSIGN(GraphRunner evaluate, runner(graph.evaluate, "evaluation"));
  std::optional<GraphRunner> score;
  if (graph.score) {
    MOTLEY_ASSIGN(score, runner(*graph.score, "scores"));
  }
  runners_.emplace(layer.graph,
                   LayerRunners{std::move(forward), std::move(input_part), std::move(weight_part),
                                std::move(evaluate), std::move(score)});
  return {};
}

Result<void> PreparedPackage::read_constants(int first, int last) {
  std::optional<SafetensorsFile> file;
  for (int l = first; l < last; ++l) {
    for (const PackageConstant& constant :
         package_->layers[static_cast<std::size_t>(l)].constants) {
      if (constants_.contains(constant.name)) continue;
      if (!file) {
        MOTLEY_ASSIGN(file, SafetensorsFile::open(package_->weights_path()));
      }
      MOTLEY_ASSIGN(const at::Tensor read, read_constant(*file, constant));
      constants_[constant.name] = read.to(device_);
    }
  }
  return {};
}

PreparedPackage::LayerRunners& PreparedPackage::runners(int layer) {
  const auto found = runners_.find(package_->layers.at(static_cast<std::size_t>(layer)).graph);
  MOTLEY_CHECK(found != runners_.end(), "layer {} was not prepared", layer);
  return found->second;
}

std::vector<at::Tensor> PreparedPackage::constants(int layer) const {
  std::vector<at::Tensor> tensors;
  for (const PackageConstant& constant :
       package_->layers.at(static_cast<std::size_t>(layer)).constants) {
    tensors.push_back(constants_.at(constant.name));
  }
  return tensors;
}

}  // namespace motley
