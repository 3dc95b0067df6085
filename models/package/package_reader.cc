// Parsing of package.json, which is untrusted.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/json.h"
#include "base/json/json_fields.h"
#include "models/package/argument_reader.h"
#include "models/package/graph_reader.h"
#include "models/package/layer_fit.h"
#include "models/package/package.h"
#include "models/package/package_fields.h"
#include "models/package/package_limits.h"
#include "models/package/package_names.h"
#include "models/package/quantised_weight.h"
#include "models/package/sha256.h"

namespace motley {
namespace {

constexpr const char* kFormat = "motley-package";

std::size_t nodes_of(const LayerGraph& graph) {
  return graph.forward.nodes.size() + graph.input_part.nodes.size() +
         graph.weight_part.nodes.size() + graph.evaluate.nodes.size() +
         (graph.score ? graph.score->nodes.size() : 0);
}

void add_shape(Hasher128& hasher, const std::string& what, const TensorSpec& tensor) {
  hasher.add(
      fmt::format("{} {} {}\n", what, dtype_name(tensor.type), fmt::join(tensor.shape, ",")));
}

// Tensors with a gradient are hashed as in packages of version 1.
void add_boundary(Hasher128& hasher, const std::string& what, const BoundarySpec& tensor) {
  add_shape(hasher, tensor.gradient ? what : "exact " + what, tensor);
}

std::string signature_of(const Package& package, int index, const std::string& graph_hash) {
  const PackageLayer& layer = package.layers[static_cast<std::size_t>(index)];
  Hasher128 hasher;
  hasher.add(graph_hash);
  if (index == 0) {
    for (const SampleInput& input : package.inputs) add_shape(hasher, "input", input.tensor);
  } else {
    for (const BoundarySpec& input : package.inputs_of(index)) add_boundary(hasher, "input", input);
  }
  for (const BoundarySpec& output : layer.outputs) add_boundary(hasher, "output", output);
  if (layer.outputs.empty()) add_shape(hasher, "target", package.target);
  for (const auto& parameter : layer.parameters) {
    add_shape(hasher, "parameter", {Dtype::kFloat32, parameter.shape});
  }
  for (const auto& statistic : layer.statistics) {
    add_shape(hasher, "statistic", {Dtype::kFloat32, statistic.shape});
  }
  for (const auto& constant : layer.constants) add_shape(hasher, "constant", constant.tensor);
  return hasher.hex();
}

// Other names of parameters in the state_dict, for programs that load one; not used here.
Result<void> check_aliases(const JsonFields& fields) {
  MOTLEY_ASSIGN(const auto aliases, fields.members("aliases", kLayerTensorsMax));
  for (const auto& [alias, name] : aliases) {
    if (!name.value().is_string()) return name.bad("a name was expected");
  }
  return {};
}

class PackageReader {
 public:
  explicit PackageReader(std::int64_t version) : version_(version) {}

  Result<Package> read(const JsonFields& fields) {
    const bool named = version_ >= kNamedInputsVersion && fields.has("inputs");
    MOTLEY_TRY(check_keys(fields,
                          {"format", "version", "made_by", "name", named ? "inputs" : "input",
                           named ? "inputs" : "input_limit", "target", "target_limit", "ignored",
                           "units_per_sample", "unit", "aliases", "layers", "graphs", "weights"},
                          {"files", "adapter", "quantised"}));
    MOTLEY_ASSIGN(package_.inputs, named ? read_named_inputs(fields) : read_only_input(fields));
    MOTLEY_TRY(read_head(fields));
    MOTLEY_TRY(check_aliases(fields));
    MOTLEY_TRY(read_weights(fields));
    MOTLEY_TRY(read_layers(fields));
    MOTLEY_TRY(read_graphs(fields));
    MOTLEY_TRY(read_quantised_weights(fields));
    MOTLEY_ASSIGN(package_.files, read_model_files(fields));
    MOTLEY_TRY(read_adapter(fields));
    return std::move(package_);
  }

 private:
  Result<void> read_head(const JsonFields& fields) {
    MOTLEY_ASSIGN(package_.made_by, fields.text("made_by"));
    MOTLEY_ASSIGN(package_.name, read_name(fields, "name"));
    MOTLEY_ASSIGN(package_.target, read_sample(fields, "target"));
    MOTLEY_ASSIGN(package_.target_limit, read_limit(fields, "target_limit", package_.target));
    MOTLEY_ASSIGN(const JsonFields ignored, fields.member("ignored"));
    if (!ignored.value().is_null()) {
      MOTLEY_ASSIGN(package_.ignored,
                    fields.integer("ignored", -kPackageUnitsMax, kPackageUnitsMax));
      if (package_.target.type != Dtype::kInt64) {
        return ignored.bad("only an integer target can be ignored");
      }
    }
    MOTLEY_ASSIGN(package_.units_per_sample,
                  fields.integer("units_per_sample", 1, kPackageUnitsMax));
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
    MOTLEY_ASSIGN(const std::int64_t bytes, weights.integer("bytes", 0, kPackageTensorBytesMax));
    package_.weights.bytes = static_cast<std::uint64_t>(bytes);
    MOTLEY_ASSIGN(package_.weights.sha256, read_sha256(weights, "sha256"));
    return {};
  }

  Result<void> read_layers(const JsonFields& fields) {
    MOTLEY_ASSIGN(const JsonFields graphs, fields.member("graphs"));
    MOTLEY_ASSIGN(const auto items, fields.items("layers", 1, kPackageLayersMax));
    PackageNames names;
    for (const JsonFields& item : items) {
      const bool is_last = package_.layers.size() + 1 == items.size();
      MOTLEY_ASSIGN(PackageLayer layer, read_layer(item, version_, graphs.value().size(), is_last));
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
      std::set<std::vector<bool>> narrow;  // constants of layers before
      for (const int user : users) {
        MOTLEY_TRY(fit_layer(item, roles, user));
        MOTLEY_TRY(check_narrow(item, graph, narrow, user));
        layer_at(user).signature = signature_of(package_, user, hasher.hex());
      }
      package_.graphs.push_back(std::move(graph));
    }
    return {};
  }

  // Requires a name for every trained parameter, so that an adapter's file is complete.
  Result<void> read_adapter(const JsonFields& fields) {
    MOTLEY_ASSIGN(package_.adapter_names, read_adapter_names(fields));
    if (package_.adapter_names.empty()) return {};
    std::set<std::string> trained;
    for (const PackageLayer& layer : package_.layers) {
      for (const PackageParameter& each : layer.parameters) trained.insert(each.name);
      for (const PackageStatistic& each : layer.statistics) trained.insert(each.name);
    }
    const auto same_name = [](const std::string& a, const auto& b) { return a == b.first; };
    if (std::equal(trained.begin(), trained.end(), package_.adapter_names.begin(),
                   package_.adapter_names.end(), same_name)) {
      return {};
    }
    return fields.bad("adapter", "it does not list exactly the trained parameters of the layers");
  }

  Result<void> fit_layer(const JsonFields& graph, const RoleCounts& roles, int index) {
    const PackageLayer& layer = layer_at(index);
    const std::string fault = misfit(roles, layer, package_.inputs_of(index));
    if (fault.empty()) return {};
    return graph.bad(fmt::format("it does not match layer '{}': {}", excerpt(layer.name), fault));
  }

  Result<void> check_narrow(const JsonFields& item,
                            const LayerGraph& graph,
                            std::set<std::vector<bool>>& before,
                            int index) {
    const PackageLayer& layer = layer_at(index);
    std::vector<bool> narrow;
    for (const PackageConstant& each : layer.constants) {
      narrow.push_back(is_narrow(each.tensor.type));
    }
    if (std::ranges::find(narrow, true) == narrow.end()) return {};
    if (!before.insert(narrow).second) return {};
    const std::string fault = narrow_fault(graph, narrow);
    if (fault.empty()) return {};
    return item.bad(fmt::format("layer '{}': {}", excerpt(layer.name), fault));
  }

  Result<void> read_quantised_weights(const JsonFields& fields) {
    if (version_ < kNarrowConstantsVersion && fields.has("quantised")) {
      return fields.bad("quantised", "packages of version 1 have no quantised weights");
    }
    MOTLEY_ASSIGN(package_.quantised, read_quantised(fields, tensors_of(package_)));
    return {};
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

  const std::int64_t version_;
  Package package_;
  std::map<int, std::vector<int>> users_;  // [graph]: its layers, ascending
};

}  // namespace

std::vector<BoundarySpec> Package::inputs_of(int index) const {
  if (index != 0) return layers[static_cast<std::size_t>(index) - 1].outputs;
  std::vector<BoundarySpec> specs;
  for (const SampleInput& input : inputs) specs.push_back({input.tensor, /*gradient=*/false});
  return specs;
}

Result<Package> parse_package(std::string_view text, const std::string& source) {
  MOTLEY_ASSIGN(const Json json, parse_json(text, source));
  const JsonSource place(source, text);
  MOTLEY_ASSIGN(const std::int64_t version,
                JsonFields(json, place, ErrorCode::kConfig).header(kFormat, 1, kPackageVersionMax));
  MOTLEY_ASSIGN(Package package,
                PackageReader(version).read(JsonFields(json, place, ErrorCode::kCorrupt)));
  package.hash = hash128_hex(std::as_bytes(std::span(text)));
  MOTLEY_ASSIGN(Sha256 hash, Sha256::make());
  hash.add(std::as_bytes(std::span(text)));
  package.sha256 = hash.hex();
  return package;
}

}  // namespace motley
