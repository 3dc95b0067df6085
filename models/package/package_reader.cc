// package.json as the untrusted text that it is.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/hash.h"
#include "base/json.h"
#include "models/package/argument_reader.h"
#include "models/package/graph_reader.h"
#include "models/package/layer_fit.h"
#include "models/package/limits.h"
#include "models/package/package.h"
#include "models/package/package_names.h"
#include "models/package/sha256.h"
#include "plan/json_fields.h"

namespace motley {
namespace {

constexpr const char* kFormat = "motley-package";
constexpr int kVersion = 1;
constexpr std::int64_t kBytesMax = 1LL << 50;
constexpr std::int64_t kUnitsMax = 1LL << 40;
constexpr double kFlopsMax = 1e30;

Result<std::string> read_name(const JsonFields& fields, const char* key) {
  MOTLEY_ASSIGN(std::string name, fields.text(key));
  const bool printable = std::none_of(name.begin(), name.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
  });
  if (name.empty() || name.size() > kPackageNameMax || !printable) {
    return fields.bad(key,
                      fmt::format("1 to {} characters without control characters were expected",
                                  kPackageNameMax));
  }
  return name;
}

Result<std::vector<std::int64_t>> read_shape(const JsonFields& fields) {
  MOTLEY_ASSIGN(const JsonFields list, fields.member("shape"));
  const Json& json = list.value();
  if (!json.is_array() || json.size() > kTensorDimsMax) {
    return list.bad(fmt::format("a list of at most {} sizes was expected", kTensorDimsMax));
  }
  std::vector<std::int64_t> shape;
  std::int64_t count = 1;
  for (const Json& item : json) {
    const bool fits = item.is_number_integer() && item >= 1 && item <= kTensorCountMax / count;
    if (!fits) {
      return list.bad(fmt::format("sizes of at least 1 and {} elements at most were expected",
                                  kTensorCountMax));
    }
    shape.push_back(item.get<std::int64_t>());
    count *= shape.back();
  }
  return shape;
}

Result<NumberType> read_type(const JsonFields& fields) {
  MOTLEY_ASSIGN(const std::string text, fields.text("type"));
  if (const auto type = number_type_of(text)) return *type;
  return fields.bad("type",
                    fmt::format("it is '{}'; float32, int64 or bool was expected", excerpt(text)));
}

Result<TensorSpec> read_tensor(const JsonFields& fields) {
  MOTLEY_TRY(check_keys(fields, {"type", "shape"}));
  TensorSpec tensor;
  MOTLEY_ASSIGN(tensor.type, read_type(fields));
  MOTLEY_ASSIGN(tensor.shape, read_shape(fields));
  return tensor;
}

// The data's input or target, and its limit.
Result<TensorSpec> read_sample(const JsonFields& fields, const char* key) {
  MOTLEY_ASSIGN(const JsonFields field, fields.member(key));
  MOTLEY_ASSIGN(TensorSpec tensor, read_tensor(field));
  if (tensor.type == NumberType::kBool) return field.bad("float32 or int64 was expected");
  return tensor;
}

Result<std::int64_t> read_limit(const JsonFields& fields,
                                const char* key,
                                const TensorSpec& tensor) {
  const bool is_integer = tensor.type == NumberType::kInt64;
  return fields.integer(key, is_integer ? 1 : 0, is_integer ? kUnitsMax : 0);
}

Result<PackageParameter> read_parameter(const JsonFields& fields) {
  MOTLEY_TRY(check_keys(fields, {"name", "shape", "decayed", "tied"}));
  PackageParameter parameter;
  MOTLEY_ASSIGN(parameter.name, read_name(fields, "name"));
  MOTLEY_ASSIGN(parameter.shape, read_shape(fields));
  MOTLEY_ASSIGN(parameter.decayed, fields.boolean("decayed"));
  MOTLEY_ASSIGN(parameter.tied, fields.boolean("tied"));
  return parameter;
}

Result<PackageStatistic> read_statistic(const JsonFields& fields) {
  MOTLEY_TRY(check_keys(fields, {"name", "shape", "momentum"}));
  PackageStatistic statistic;
  MOTLEY_ASSIGN(statistic.name, read_name(fields, "name"));
  MOTLEY_ASSIGN(statistic.shape, read_shape(fields));
  MOTLEY_ASSIGN(statistic.momentum, fields.quantity("momentum", 1));
  return statistic;
}

Result<PackageConstant> read_constant(const JsonFields& fields) {
  MOTLEY_TRY(check_keys(fields, {"name", "type", "shape"}));
  PackageConstant constant;
  MOTLEY_ASSIGN(constant.name, read_name(fields, "name"));
  MOTLEY_ASSIGN(constant.tensor.type, read_type(fields));
  MOTLEY_ASSIGN(constant.tensor.shape, read_shape(fields));
  return constant;
}

template <class Read>
auto read_list(const JsonFields& fields, const char* key, std::size_t size_max, Read read)
    -> Result<std::vector<std::decay_t<decltype(read(fields).value())>>> {
  MOTLEY_ASSIGN(const auto items, fields.items(key, 0, size_max));
  std::vector<std::decay_t<decltype(read(fields).value())>> list;
  for (const JsonFields& item : items) {
    MOTLEY_ASSIGN(auto value, read(item));
    list.push_back(std::move(value));
  }
  return list;
}

// The boundary of several tensors is one flat one.
std::string boundary_fault(const std::vector<TensorSpec>& outputs, bool is_last) {
  if (is_last != outputs.empty()) return "all layers but the last have outputs, and the last none";
  std::int64_t count = 0;
  for (const TensorSpec& output : outputs) {
    if (output.type != NumberType::kFloat32) return "what crosses a boundary is float32";
    count += output.count();
  }
  return count <= kTensorCountMax ? "" : "more crosses the boundary than a tensor may have";
}

Result<PackageLayer> read_layer(const JsonFields& fields, std::size_t graphs, bool is_last) {
  MOTLEY_TRY(check_keys(fields, {"name", "graph", "outputs", "parameters", "statistics",
                                 "constants", "flops_per_sample"}));
  PackageLayer layer;
  MOTLEY_ASSIGN(layer.name, read_name(fields, "name"));
  MOTLEY_ASSIGN(const std::int64_t graph,
                fields.integer("graph", 0, static_cast<std::int64_t>(graphs) - 1));
  layer.graph = static_cast<int>(graph);
  MOTLEY_ASSIGN(layer.outputs, read_list(fields, "outputs", kBoundaryTensorsMax, read_tensor));
  if (const std::string fault = boundary_fault(layer.outputs, is_last); !fault.empty()) {
    return fields.bad("outputs", fault);
  }
  MOTLEY_ASSIGN(layer.parameters,
                read_list(fields, "parameters", kLayerTensorsMax, read_parameter));
  MOTLEY_ASSIGN(layer.statistics,
                read_list(fields, "statistics", kLayerTensorsMax, read_statistic));
  MOTLEY_ASSIGN(layer.constants, read_list(fields, "constants", kLayerTensorsMax, read_constant));
  MOTLEY_ASSIGN(layer.flops_per_sample, fields.quantity("flops_per_sample", kFlopsMax));
  return layer;
}

Result<LayerGraph::Memory> read_memory(const JsonFields& graph) {
  MOTLEY_ASSIGN(const JsonFields fields, graph.member("memory"));
  MOTLEY_TRY(check_keys(fields, {"saved_bytes", "queued_bytes", "workspace_bytes"}));
  LayerGraph::Memory memory;
  MOTLEY_ASSIGN(memory.saved_bytes, fields.integer("saved_bytes", 0, kBytesMax));
  MOTLEY_ASSIGN(memory.queued_bytes, fields.integer("queued_bytes", 0, kBytesMax));
  MOTLEY_ASSIGN(memory.workspace_bytes, fields.integer("workspace_bytes", 0, kBytesMax));
  return memory;
}

Result<LayerGraph> read_layer_graph(const JsonFields& fields,
                                    bool is_last,
                                    const std::string& layer) {
  MOTLEY_TRY(check_keys(fields, {"forward", "input_part", "weight_part", "evaluate", "memory"},
                        {"score"}));
  if (fields.has("score") != is_last) {
    return fields.bad("the last layer has a score, and no other");
  }
  LayerGraph graph;
  for (const GraphPart part : kGraphParts) {
    if (part == GraphPart::kScore && !is_last) continue;
    MOTLEY_ASSIGN(const JsonFields member, fields.member(part_name(part)));
    MOTLEY_ASSIGN(Graph read, read_graph(member, part, is_last, layer));
    if (part == GraphPart::kForward) graph.forward = std::move(read);
    if (part == GraphPart::kInputPart) graph.input_part = std::move(read);
    if (part == GraphPart::kWeightPart) graph.weight_part = std::move(read);
    if (part == GraphPart::kEvaluate) graph.evaluate = std::move(read);
    if (part == GraphPart::kScore) graph.score = std::move(read);
  }
  MOTLEY_ASSIGN(graph.memory, read_memory(fields));
  return graph;
}

std::size_t nodes_of(const LayerGraph& graph) {
  return graph.forward.nodes.size() + graph.input_part.nodes.size() +
         graph.weight_part.nodes.size() + graph.evaluate.nodes.size() +
         (graph.score ? graph.score->nodes.size() : 0);
}

void add_shape(Hasher128& hasher, const char* what, const TensorSpec& tensor) {
  hasher.add(
      fmt::format("{} {} {}\n", what, number_type_name(tensor.type), fmt::join(tensor.shape, ",")));
}

std::string signature_of(const Package& package, int index, const std::string& graph_hash) {
  const PackageLayer& layer = package.layers[static_cast<std::size_t>(index)];
  Hasher128 hasher;
  hasher.add(graph_hash);
  for (const TensorSpec& input : package.inputs_of(index)) add_shape(hasher, "input", input);
  for (const TensorSpec& output : layer.outputs) add_shape(hasher, "output", output);
  if (layer.outputs.empty()) add_shape(hasher, "target", package.target);
  for (const auto& parameter : layer.parameters) {
    add_shape(hasher, "parameter", {NumberType::kFloat32, parameter.shape});
  }
  for (const auto& statistic : layer.statistics) {
    add_shape(hasher, "statistic", {NumberType::kFloat32, statistic.shape});
  }
  for (const auto& constant : layer.constants) add_shape(hasher, "constant", constant.tensor);
  return hasher.hex();
}

// Other names of parameters in the state_dict, for who loads one: nothing here needs them.
Result<void> check_aliases(const JsonFields& fields) {
  MOTLEY_ASSIGN(const auto aliases, fields.members("aliases", kLayerTensorsMax));
  for (const auto& [alias, name] : aliases) {
    if (!name.value().is_string()) return name.bad("a name was expected");
  }
  return {};
}

class PackageReader {
 public:
  Result<Package> read(const JsonFields& fields) {
    MOTLEY_TRY(check_keys(fields, {"format", "version", "made_by", "name", "input", "input_limit",
                                   "target", "target_limit", "ignored", "units_per_sample", "unit",
                                   "aliases", "layers", "graphs", "weights"}));
    MOTLEY_TRY(read_head(fields));
    MOTLEY_TRY(check_aliases(fields));
    MOTLEY_TRY(read_weights(fields));
    MOTLEY_TRY(read_layers(fields));
    MOTLEY_TRY(read_graphs(fields));
    return std::move(package_);
  }

 private:
  Result<void> read_head(const JsonFields& fields) {
    MOTLEY_ASSIGN(package_.made_by, fields.text("made_by"));
    MOTLEY_ASSIGN(package_.name, read_name(fields, "name"));
    MOTLEY_ASSIGN(package_.input, read_sample(fields, "input"));
    MOTLEY_ASSIGN(package_.input_limit, read_limit(fields, "input_limit", package_.input));
    MOTLEY_ASSIGN(package_.target, read_sample(fields, "target"));
    MOTLEY_ASSIGN(package_.target_limit, read_limit(fields, "target_limit", package_.target));
    MOTLEY_ASSIGN(const JsonFields ignored, fields.member("ignored"));
    if (!ignored.value().is_null()) {
      MOTLEY_ASSIGN(package_.ignored, fields.integer("ignored", -kUnitsMax, kUnitsMax));
      if (package_.target.type != NumberType::kInt64) {
        return ignored.bad("only an integer of the target can be left out");
      }
    }
    MOTLEY_ASSIGN(package_.units_per_sample, fields.integer("units_per_sample", 1, kUnitsMax));
    MOTLEY_ASSIGN(const std::string unit, fields.text("unit"));
    if (unit != "sample" && unit != "token") {
      return fields.bad("unit", "\"sample\" or \"token\" was expected");
    }
    package_.unit = unit == "token" ? Package::Unit::kToken : Package::Unit::kSample;
    return {};
  }

  Result<void> read_weights(const JsonFields& fields) {
    MOTLEY_ASSIGN(const JsonFields weights, fields.member("weights"));
    MOTLEY_TRY(check_keys(weights, {"file", "bytes", "sha256"}));
    MOTLEY_ASSIGN(package_.weights.file, weights.text("file"));
    if (package_.weights.file != "weights.safetensors") {
      return weights.bad("file", "\"weights.safetensors\" was expected");
    }
    MOTLEY_ASSIGN(const std::int64_t bytes, weights.integer("bytes", 0, kBytesMax));
    package_.weights.bytes = static_cast<std::uint64_t>(bytes);
    MOTLEY_ASSIGN(package_.weights.sha256, weights.text("sha256"));
    constexpr std::size_t kDigits = 64;
    if (package_.weights.sha256.size() != kDigits ||
        package_.weights.sha256.find_first_not_of("0123456789abcdef") != std::string::npos) {
      return weights.bad("sha256", "64 lower-case hexadecimal digits were expected");
    }
    return {};
  }

  Result<void> read_layers(const JsonFields& fields) {
    MOTLEY_ASSIGN(const JsonFields graphs, fields.member("graphs"));
    MOTLEY_ASSIGN(const auto items, fields.items("layers", 1, kPackageLayersMax));
    PackageNames names;
    for (const JsonFields& item : items) {
      const bool is_last = package_.layers.size() + 1 == items.size();
      MOTLEY_ASSIGN(PackageLayer layer, read_layer(item, graphs.value().size(), is_last));
      if (const std::string fault = names.add(layer); !fault.empty()) return item.bad(fault);
      package_.layers.push_back(std::move(layer));
    }
    return {};
  }

  Result<void> read_graphs(const JsonFields& fields) {
    MOTLEY_ASSIGN(const auto items, fields.items("graphs", 1, package_.layers.size()));
    const int last = static_cast<int>(package_.layers.size()) - 1;
    std::size_t nodes = 0;
    for (const JsonFields& item : items) {
      const int index = static_cast<int>(package_.graphs.size());
      const std::vector<int> users = users_of(index);
      if (users.empty()) return item.bad("no layer has this graph");
      const bool is_last = users.back() == last;
      if (is_last && users.size() > 1) return item.bad("the last layer shares its graph");
      MOTLEY_ASSIGN(LayerGraph graph, read_layer_graph(item, is_last, layer_at(users[0]).name));
      nodes += nodes_of(graph);
      if (nodes > kPackageNodesMax) {
        return item.bad(fmt::format("the graphs have more than {} nodes", kPackageNodesMax));
      }
      const auto [roles, fault] = roles_of(graph, is_last);
      if (!fault.empty()) return item.bad(fault);
      Hasher128 hasher;
      hasher.add(item.value().dump());
      for (const int user : users) {
        MOTLEY_TRY(fit_layer(item, roles, user));
        layer_at(user).signature = signature_of(package_, user, hasher.hex());
      }
      package_.graphs.push_back(std::move(graph));
    }
    return {};
  }

  Result<void> fit_layer(const JsonFields& graph, const GraphRoles& roles, int index) {
    const PackageLayer& layer = layer_at(index);
    const std::string fault =
        misfit(roles, layer, package_.inputs_of(index).size(), /*is_first=*/index == 0);
    if (fault.empty()) return {};
    return graph.bad(fmt::format("it does not fit layer '{}': {}", excerpt(layer.name), fault));
  }

  std::vector<int> users_of(int graph) {
    if (users_.empty()) {
      for (std::size_t l = 0; l < package_.layers.size(); ++l) {
        users_[package_.layers[l].graph].push_back(static_cast<int>(l));
      }
    }
    return users_[graph];
  }

  PackageLayer& layer_at(int index) { return package_.layers[static_cast<std::size_t>(index)]; }

  Package package_;
  std::map<int, std::vector<int>> users_;  // [graph]: its layers, ascending
};

}  // namespace

std::vector<TensorSpec> Package::inputs_of(int index) const {
  if (index == 0) return {input};
  return layers[static_cast<std::size_t>(index) - 1].outputs;
}

Result<Package> parse_package(std::string_view text, const std::string& source) {
  MOTLEY_ASSIGN(const Json json, parse_json(text, source));
  const JsonSource place(source, text);
  MOTLEY_TRY(JsonFields(json, place, ErrorCode::kConfig).header(kFormat, kVersion));
  MOTLEY_ASSIGN(Package package,
                PackageReader().read(JsonFields(json, place, ErrorCode::kCorrupt)));
  package.hash = hash128_hex(std::as_bytes(std::span(text)));
  MOTLEY_ASSIGN(Sha256 hash, Sha256::make());
  hash.add(std::as_bytes(std::span(text)));
  package.sha256 = hash.hex();
  return package;
}

}  // namespace motley
