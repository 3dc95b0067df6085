#include "cli/ckpt/tensor_listing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/text/text_table.h"
#include "checkpoint/folders.h"
#include "checkpoint/safetensors_header.h"
#include "checkpoint/weight_names.h"
#include "models/spec/model_spec.h"
#include "plan/quantity_text.h"

namespace motley {
namespace {

struct ListedLayer {
  std::string name;  // "" = not part of a known layer
  std::uint64_t bytes = 0;
  std::vector<StoredTensor> tensors;
};

// Maps each parameter to its layer.
std::map<std::string, std::string> layers_by_parameter(const std::optional<ModelConfig>& model) {
  std::map<std::string, std::string> layers;
  if (!model) return layers;
  const auto spec = describe_model(*model);
  if (!spec.ok()) return layers;
  for (const LayerSpec& layer : spec->layers) {
    for (const ParameterSpec& parameter : layer.parameters) {
      layers.emplace(bare_weight_name(parameter.name), layer.name);
    }
  }
  return layers;
}

std::vector<ListedLayer> listed_layers(const OpenedWeights& weights) {
  const auto names = layers_by_parameter(weights.model);
  std::vector<ListedLayer> layers;
  for (StoredTensor& tensor : parameters_of(weights)) {
    const auto found = names.find(bare_weight_name(tensor.outline.name));
    const std::string name = found == names.end() ? "" : found->second;
    if (layers.empty() || layers.back().name != name) layers.push_back({.name = name});
    layers.back().bytes += tensor_bytes(tensor.outline);
    layers.back().tensors.push_back(std::move(tensor));
  }
  return layers;
}

// Bytes of optimizer state by parameter.
std::map<std::string, std::uint64_t> optimizer_bytes(const CheckpointReader& reader) {
  std::map<std::string, std::uint64_t> bytes;
  for (const StoredTensor& tensor : reader.tensors()) {
    const std::string& name = tensor.outline.name;
    if (tensor.of_optimizer) bytes[name.substr(name.find('/') + 1)] += tensor_bytes(tensor.outline);
  }
  return bytes;
}

std::string size_text(std::uint64_t bytes) {
  return bytes_text(static_cast<double>(bytes));
}

}  // namespace

std::string tensors_text(const OpenedWeights& weights) {
  std::vector<TextRow> rows = {{"layer", "tensor", "type", "shape", "size", "file"}};
  for (const ListedLayer& layer : listed_layers(weights)) {
    if (!layer.name.empty()) rows.push_back({layer.name, "", "", "", size_text(layer.bytes), ""});
    for (const StoredTensor& tensor : layer.tensors) {
      rows.push_back({"", tensor.outline.name, tensor.outline.dtype,
                      fmt::format("[{}]", fmt::join(tensor.outline.shape, ", ")),
                      size_text(tensor_bytes(tensor.outline)), tensor.file.filename().string()});
    }
  }
  return aligned_table(rows);
}

Json layers_to_json(const OpenedWeights& weights) {
  const auto moments = optimizer_bytes(weights.reader);
  Json layers = Json::array();
  for (const ListedLayer& layer : listed_layers(weights)) {
    Json tensors = Json::array();
    for (const StoredTensor& tensor : layer.tensors) {
      const auto found = moments.find(tensor.outline.name);
      tensors.push_back({{"name", tensor.outline.name},
                         {"dtype", tensor.outline.dtype},
                         {"shape", tensor.outline.shape},
                         {"bytes", tensor_bytes(tensor.outline)},
                         {"file", tensor.file.filename().string()},
                         {"optimizer_bytes", found == moments.end() ? 0 : found->second}});
    }
    layers.push_back({{"layer", layer.name.empty() ? Json() : Json(layer.name)},
                      {"bytes", layer.bytes},
                      {"tensors", std::move(tensors)}});
  }
  return layers;
}

std::string plan_text(const Manifest& manifest) {
  const auto files = std::ranges::count_if(
      manifest.files, [](const WrittenFile& file) { return is_parameter_file(file.name); });
  std::string text = fmt::format("{} file{} of parameters", files, files == 1 ? "" : "s");
  if (const auto& plan = manifest.state.plan) {
    text += fmt::format("; micro-batches of {}, chunks on [{}] ranks, codecs [{}], gradients {}",
                        plan->micro_batch, fmt::join(plan->replicas, ", "),
                        fmt::join(plan->codecs, ", "), plan->gradient_codec);
  }
  return text;
}

Json plan_fingerprint_to_json(const Manifest& manifest) {
  if (!manifest.state.plan) return {};
  const PlanFingerprint& plan = *manifest.state.plan;
  return {{"micro_batch", plan.micro_batch},
          {"codecs", plan.codecs},
          {"gradient_codec", plan.gradient_codec},
          {"replicas", plan.replicas}};
}

}  // namespace motley
