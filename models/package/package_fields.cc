// Parsing of parts of package.json, which is untrusted.
#include "models/package/package_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <type_traits>
#include <utility>

#include "base/json.h"
#include "models/package/argument_reader.h"
#include "models/package/graph_reader.h"
#include "models/package/package_limits.h"

namespace motley {
namespace {

constexpr double kFlopsMax = 1e30;

Result<Dtype> read_type(const JsonFields& fields) {
  MOTLEY_ASSIGN(const std::string text, fields.text("type"));
  if (const auto type = dtype_of(text)) return *type;
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

// Since version 2 an output may have no gradient.
Result<BoundarySpec> read_output(const JsonFields& fields, std::int64_t version) {
  const bool says_gradient = version >= kExactValuesVersion && fields.has("gradient");
  MOTLEY_TRY(says_gradient ? check_keys(fields, {"type", "shape", "gradient"})
                           : check_keys(fields, {"type", "shape"}));
  BoundarySpec output;
  MOTLEY_ASSIGN(output.type, read_type(fields));
  MOTLEY_ASSIGN(output.shape, read_shape(fields));
  output.gradient = output.type == Dtype::kFloat32;
  if (version < kExactValuesVersion && !output.gradient) {
    return fields.bad("type", "values between layers must be float32 in packages of version 1");
  }
  if (!says_gradient) return output;
  MOTLEY_ASSIGN(const bool gradient, fields.boolean("gradient"));
  if (gradient && !output.gradient) return fields.bad("gradient", "only float32 has a gradient");
  output.gradient = gradient;
  return output;
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

// From version 2 on it may be of a narrow type.
Result<Dtype> read_constant_type(const JsonFields& fields, std::int64_t version) {
  if (version < kNarrowConstantsVersion) return read_type(fields);
  MOTLEY_ASSIGN(const std::string text, fields.text("type"));
  if (const auto type = constant_type_of(text)) return *type;
  return fields.bad("type", fmt::format("it is '{}'; float32, int64, bool, bfloat16, float16, int8 "
                                        "or uint8 was expected",
                                        excerpt(text)));
}

Result<PackageConstant> read_constant(const JsonFields& fields, std::int64_t version) {
  MOTLEY_TRY(check_keys(fields, {"name", "type", "shape"}));
  PackageConstant constant;
  MOTLEY_ASSIGN(constant.name, read_name(fields, "name"));
  MOTLEY_ASSIGN(constant.tensor.type, read_constant_type(fields, version));
  MOTLEY_ASSIGN(constant.tensor.shape, read_shape(fields));
  return constant;
}

// The name is a keyword argument of the model and a part of file names.
bool is_input_name(const std::string& name) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !name.empty() && name.size() <= kInputNameMax && is_letter(name.front()) &&
         std::ranges::all_of(name, [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

// Names become files, which some systems compare regardless of case.
std::string in_lower_case(std::string name) {
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return name;
}

Result<SampleInput> read_input(const JsonFields& fields) {
  MOTLEY_TRY(check_keys(fields, {"name", "type", "shape", "limit"}));
  SampleInput input;
  MOTLEY_ASSIGN(input.name, fields.text("name"));
  if (!is_input_name(input.name)) {
    return fields.bad("name", fmt::format("1 to {} letters, digits and underscores were expected, "
                                          "not first a digit",
                                          kInputNameMax));
  }
  MOTLEY_ASSIGN(input.tensor.type, read_type(fields));
  MOTLEY_ASSIGN(input.tensor.shape, read_shape(fields));
  MOTLEY_ASSIGN(const JsonFields limit, fields.member("limit"));
  if (limit.value().is_null()) return input;
  if (input.tensor.type != Dtype::kInt64) return limit.bad("only integers have a limit");
  MOTLEY_ASSIGN(input.limit, fields.integer("limit", 1, kPackageUnitsMax));
  return input;
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

// The tensors of a boundary are packed into one, of bytes if some are exact.
std::string boundary_fault(const std::vector<BoundarySpec>& outputs, bool is_last) {
  if (is_last != outputs.empty()) return "all layers but the last have outputs, and the last none";
  std::int64_t count = 0;
  for (const BoundarySpec& output : outputs) {
    count += output.gradient ? output.count() : output.bytes();
  }
  return count <= kTensorCountMax ? "" : "more values between layers than the limit of a tensor";
}

Result<LayerGraph::Memory> read_memory(const JsonFields& graph) {
  MOTLEY_ASSIGN(const JsonFields fields, graph.member("memory"));
  MOTLEY_TRY(
      check_keys(fields, {"saved_bytes", "queued_bytes", "workspace_bytes"}, {"converted_bytes"}));
  LayerGraph::Memory memory;
  MOTLEY_ASSIGN(memory.saved_bytes, fields.integer("saved_bytes", 0, kPackageTensorBytesMax));
  MOTLEY_ASSIGN(memory.queued_bytes, fields.integer("queued_bytes", 0, kPackageTensorBytesMax));
  MOTLEY_ASSIGN(memory.workspace_bytes,
                fields.integer("workspace_bytes", 0, kPackageTensorBytesMax));
  if (!fields.has("converted_bytes")) return memory;
  MOTLEY_ASSIGN(memory.converted_bytes,
                fields.integer("converted_bytes", 0, kPackageTensorBytesMax));
  return memory;
}

Result<std::optional<double>> read_flops(const JsonFields& layer, const char* key) {
  if (!layer.has(key)) return std::optional<double>();
  MOTLEY_ASSIGN(const double flops, layer.quantity(key, kFlopsMax));
  return std::optional<double>(flops);
}

}  // namespace

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

Result<std::vector<SampleInput>> read_named_inputs(const JsonFields& fields) {
  MOTLEY_ASSIGN(std::vector<SampleInput> inputs,
                read_list(fields, "inputs", kPackageInputsMax, read_input));
  if (inputs.empty()) return fields.bad("inputs", "at least one input was expected");
  std::set<std::string> names;
  std::int64_t bytes = 0;
  for (const SampleInput& input : inputs) {
    if (!names.insert(in_lower_case(input.name)).second) {
      return fields.bad(
          "inputs", fmt::format("two inputs have the name '{}', regardless of case", input.name));
    }
    bytes += input.tensor.bytes();
  }
  if (bytes > kTensorCountMax) {
    return fields.bad("inputs", fmt::format("a sample has more than {} bytes", kTensorCountMax));
  }
  return inputs;
}

Result<std::vector<SampleInput>> read_only_input(const JsonFields& fields) {
  SampleInput input;
  MOTLEY_ASSIGN(input.tensor, read_sample(fields, "input"));
  MOTLEY_ASSIGN(const std::int64_t limit, read_limit(fields, "input_limit", input.tensor));
  if (limit > 0) input.limit = limit;
  return std::vector{std::move(input)};
}

// The data's only input or its target, and its limit.
Result<TensorSpec> read_sample(const JsonFields& fields, const char* key) {
  MOTLEY_ASSIGN(const JsonFields field, fields.member(key));
  MOTLEY_ASSIGN(TensorSpec tensor, read_tensor(field));
  if (tensor.type == Dtype::kBool) return field.bad("float32 or int64 was expected");
  return tensor;
}

Result<std::int64_t> read_limit(const JsonFields& fields,
                                const char* key,
                                const TensorSpec& tensor) {
  const bool is_integer = tensor.type == Dtype::kInt64;
  return fields.integer(key, is_integer ? 1 : 0, is_integer ? kPackageUnitsMax : 0);
}

Result<PackageLayer> read_layer(const JsonFields& fields,
                                std::int64_t version,
                                std::size_t graphs,
                                bool is_last) {
  MOTLEY_TRY(check_keys(
      fields,
      {"name", "graph", "outputs", "parameters", "statistics", "constants", "flops_per_sample"},
      {"input_part_flops_per_sample", "weight_part_flops_per_sample"}));
  PackageLayer layer;
  MOTLEY_ASSIGN(layer.name, read_name(fields, "name"));
  MOTLEY_ASSIGN(const std::int64_t graph,
                fields.integer("graph", 0, static_cast<std::int64_t>(graphs) - 1));
  layer.graph = static_cast<int>(graph);
  const auto read_one = [&](const JsonFields& output) { return read_output(output, version); };
  MOTLEY_ASSIGN(layer.outputs, read_list(fields, "outputs", kBoundaryTensorsMax, read_one));
  if (const std::string fault = boundary_fault(layer.outputs, is_last); !fault.empty()) {
    return fields.bad("outputs", fault);
  }
  MOTLEY_ASSIGN(layer.parameters,
                read_list(fields, "parameters", kLayerTensorsMax, read_parameter));
  MOTLEY_ASSIGN(layer.statistics,
                read_list(fields, "statistics", kLayerTensorsMax, read_statistic));
  const auto read_frozen = [&](const JsonFields& each) { return read_constant(each, version); };
  MOTLEY_ASSIGN(layer.constants, read_list(fields, "constants", kLayerTensorsMax, read_frozen));
  MOTLEY_ASSIGN(layer.flops_per_sample, fields.quantity("flops_per_sample", kFlopsMax));
  MOTLEY_ASSIGN(layer.input_part_flops_per_sample,
                read_flops(fields, "input_part_flops_per_sample"));
  MOTLEY_ASSIGN(layer.weight_part_flops_per_sample,
                read_flops(fields, "weight_part_flops_per_sample"));
  return layer;
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

}  // namespace motley
