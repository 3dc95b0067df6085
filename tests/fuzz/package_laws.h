// The properties of package.json, and a valid one: two layers with two tensors on their boundary,
// dropout, a statistic, a constant, and a loss.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "models/package/operations.h"
#include "models/package/package.h"
#include "tests/fuzz/laws.h"

namespace motley {

inline std::string right_package() {
  return R"({
"format": "motley-package", "version": 1, "made_by": "hand", "name": "two layers",
"input": {"type": "float32", "shape": [4]}, "input_limit": 0,
"target": {"type": "int64", "shape": []}, "target_limit": 2, "ignored": -1,
"units_per_sample": 1, "unit": "sample", "aliases": {"other.weight": "body.weight"},
"layers": [
  {"name": "body", "graph": 0,
   "outputs": [{"type": "float32", "shape": [3]}, {"type": "float32", "shape": [4]}],
   "parameters": [{"name": "body.weight", "shape": [3, 4], "decayed": true, "tied": false},
                  {"name": "body.bias", "shape": [3], "decayed": false, "tied": false}],
   "statistics": [{"name": "body.mean", "shape": [3], "momentum": 0.1}],
   "constants": [{"name": "body.scale", "type": "float32", "shape": [3]}],
   "flops_per_sample": 24},
  {"name": "head", "graph": 1, "outputs": [],
   "parameters": [{"name": "head.weight", "shape": [2, 7], "decayed": true, "tied": false}],
   "statistics": [], "constants": [], "flops_per_sample": 28}],
"graphs": [
  {"forward": {
     "takes": ["input:0", "parameter:0", "parameter:1", "constant:0"],
     "nodes": [
       {"op": "aten::t", "args": [{"value": 1}], "kwargs": {}, "results": 1},
       {"op": "aten::addmm", "args": [{"value": 2}, {"value": 0}, {"value": 4}], "kwargs": {"beta": 1},
        "results": 1},
       {"op": "aten::mul.Tensor", "args": [{"value": 5}, {"value": 3}], "kwargs": {}, "results": 1},
       {"op": "motley::dropout_mask", "args": [{"value": 6}, 0.25, 3], "kwargs": {}, "results": 1},
       {"op": "aten::mul.Tensor", "args": [{"value": 6}, {"value": 7}], "kwargs": {}, "results": 1},
       {"op": "aten::mean.dim", "args": [{"value": 6}, [0]], "kwargs": {}, "results": 1}],
     "gives": [["output:0", 8], ["output:1", 0], ["saved:0", 0], ["saved:1", 7], ["observed:0", 9]]},
   "input_part": {
     "takes": ["grad:0", "saved:1", "constant:0"],
     "nodes": [
       {"op": "aten::mul.Tensor", "args": [{"value": 0}, {"value": 1}], "kwargs": {}, "results": 1},
       {"op": "aten::mul.Tensor", "args": [{"value": 3}, {"value": 2}], "kwargs": {}, "results": 1},
       {"op": "aten::sum.dim_IntList", "args": [{"value": 4}, [0]], "kwargs": {}, "results": 1}],
     "gives": [["queued:0", 4], ["parameter_grad:1", 5]]},
   "weight_part": {
     "takes": ["queued:0", "saved:0"],
     "nodes": [
       {"op": "aten::t", "args": [{"value": 0}], "kwargs": {}, "results": 1},
       {"op": "aten::mm", "args": [{"value": 2}, {"value": 1}], "kwargs": {}, "results": 1}],
     "gives": [["parameter_grad:0", 3]]},
   "evaluate": {
     "takes": ["input:0", "parameter:0", "parameter:1", "constant:0", "statistic:0"],
     "nodes": [
       {"op": "aten::t", "args": [{"value": 1}], "kwargs": {}, "results": 1},
       {"op": "aten::addmm", "args": [{"value": 2}, {"value": 0}, {"value": 5}], "kwargs": {},
        "results": 1},
       {"op": "aten::mul.Tensor", "args": [{"value": 6}, {"value": 3}], "kwargs": {}, "results": 1},
       {"op": "aten::sub.Tensor", "args": [{"value": 7}, {"value": 4}], "kwargs": {"alpha": 0},
        "results": 1}],
     "gives": [["output:0", 8], ["output:1", 0]]},
   "memory": {"saved_bytes": 40, "queued_bytes": 12, "workspace_bytes": 24}},
  {"forward": {
     "takes": ["input:0", "input:1", "parameter:0", "target:0"],
     "nodes": [
       {"op": "aten::cat", "args": [{"values": [0, 1]}, 1], "kwargs": {}, "results": 1},
       {"op": "aten::t", "args": [{"value": 2}], "kwargs": {}, "results": 1},
       {"op": "aten::mm", "args": [{"value": 4}, {"value": 5}], "kwargs": {}, "results": 1},
       {"op": "aten::_log_softmax", "args": [{"value": 6}, 1, false], "kwargs": {}, "results": 1},
       {"op": "aten::nll_loss_forward", "args": [{"value": 7}, {"value": 3}, null, 2, -1],
        "kwargs": {}, "results": 2},
       {"op": "aten::ne.Scalar", "args": [{"value": 3}, -1], "kwargs": {}, "results": 1},
       {"op": "aten::sum", "args": [{"value": 10}], "kwargs": {}, "results": 1},
       {"op": "aten::argmax", "args": [{"value": 6}, 1], "kwargs": {}, "results": 1},
       {"op": "aten::eq.Tensor", "args": [{"value": 12}, {"value": 3}], "kwargs": {}, "results": 1},
       {"op": "aten::sum", "args": [{"value": 13}], "kwargs": {}, "results": 1}],
     "gives": [["loss:0", 8], ["count:0", 11], ["correct:0", 14], ["saved:0", 4], ["saved:1", 7],
               ["saved:2", 9], ["saved:3", 3]]},
   "input_part": {
     "takes": ["saved:1", "saved:2", "saved:3", "parameter:0"],
     "nodes": [
       {"op": "aten::full", "args": [[], 1.0], "kwargs": {"dtype": {"type": "float32"}},
        "results": 1},
       {"op": "aten::nll_loss_backward",
        "args": [{"value": 4}, {"value": 0}, {"value": 2}, null, 2, -1, {"value": 1}],
        "kwargs": {}, "results": 1},
       {"op": "aten::_log_softmax_backward_data",
        "args": [{"value": 5}, {"value": 0}, 1, {"type": "float32"}], "kwargs": {}, "results": 1},
       {"op": "aten::mm", "args": [{"value": 6}, {"value": 3}], "kwargs": {}, "results": 1},
       {"op": "aten::split_with_sizes", "args": [{"value": 7}, [3, 4], 1], "kwargs": {},
        "results": 2}],
     "gives": [["input_grad:0", 8], ["input_grad:1", 9], ["queued:0", 6]]},
   "weight_part": {
     "takes": ["queued:0", "saved:0"],
     "nodes": [
       {"op": "aten::t", "args": [{"value": 0}], "kwargs": {}, "results": 1},
       {"op": "aten::mm", "args": [{"value": 2}, {"value": 1}], "kwargs": {}, "results": 1}],
     "gives": [["parameter_grad:0", 3]]},
   "evaluate": {
     "takes": ["input:0", "input:1", "parameter:0", "target:0"],
     "nodes": [
       {"op": "aten::cat", "args": [{"values": [0, 1]}, 1], "kwargs": {}, "results": 1},
       {"op": "aten::t", "args": [{"value": 2}], "kwargs": {}, "results": 1},
       {"op": "aten::mm", "args": [{"value": 4}, {"value": 5}], "kwargs": {}, "results": 1},
       {"op": "aten::_log_softmax", "args": [{"value": 6}, 1, false], "kwargs": {}, "results": 1},
       {"op": "aten::nll_loss_forward", "args": [{"value": 7}, {"value": 3}, null, 2, -1],
        "kwargs": {}, "results": 2},
       {"op": "aten::ne.Scalar", "args": [{"value": 3}, -1], "kwargs": {}, "results": 1},
       {"op": "aten::sum", "args": [{"value": 10}], "kwargs": {}, "results": 1}],
     "gives": [["loss:0", 8], ["count:0", 11]]},
   "score": {
     "takes": ["input:0", "input:1", "parameter:0"],
     "nodes": [
       {"op": "aten::cat", "args": [{"values": [0, 1]}, 1], "kwargs": {}, "results": 1},
       {"op": "aten::t", "args": [{"value": 2}], "kwargs": {}, "results": 1},
       {"op": "aten::mm", "args": [{"value": 3}, {"value": 4}], "kwargs": {}, "results": 1},
       {"op": "aten::view", "args": [{"value": 5}, [{"batch": [0, 1]}, 2]], "kwargs": {},
        "results": 1}],
     "gives": [["output:0", 6]]},
   "memory": {"saved_bytes": 60, "queued_bytes": 8, "workspace_bytes": 28}}],
"weights": {"file": "weights.safetensors", "bytes": 0,
            "sha256": "0000000000000000000000000000000000000000000000000000000000000000"}}
)";
}

// The same with several inputs by name, of which the first layer uses the first.
inline std::string right_named_package() {
  std::string text = right_package();
  const auto replace = [&](const std::string& old, const std::string& with) {
    text.replace(text.find(old), old.size(), with);
  };
  replace("\"version\": 1", "\"version\": 3");
  replace("\"input\": {\"type\": \"float32\", \"shape\": [4]}, \"input_limit\": 0,",
          R"("inputs": [{"name": "pixel_values", "type": "float32", "shape": [4], "limit": null},
           {"name": "input_ids", "type": "int64", "shape": [2], "limit": 50},
           {"name": "mask", "type": "bool", "shape": [2, 1], "limit": null},
           {"name": "weights_2", "type": "int64", "shape": [], "limit": null}],)");
  return text;
}

// The violation in the inputs of a package that was read, or "".
inline std::string wrong_with_inputs(const std::vector<SampleInput>& inputs) {
  if (inputs.empty()) return "no inputs";
  std::vector<std::string> names;
  for (const SampleInput& input : inputs) {
    if (is_narrow(input.tensor.type)) return "an input of a narrow type";
    if (input.limit && (input.tensor.type != Dtype::kInt64 || *input.limit < 1)) {
      return "a limit that is none";
    }
    if (inputs.size() > 1 && input.name.empty()) return "an input without a name";
    if (input.name.find_first_of("/.\\ \n") != std::string::npos) return "a name that is a path";
    names.push_back(input.name);
  }
  std::ranges::sort(names);
  return std::ranges::adjacent_find(names) == names.end() ? "" : "two inputs of one name";
}

// The violation in a graph that was read, or "".
inline std::string wrong_with_graph(const Graph& graph) {
  int values = static_cast<int>(graph.takes.size());
  std::vector<bool> dead(static_cast<std::size_t>(graph.values));
  const auto usable = [&](ValueId value) {
    return value.index >= 0 && value.index < values && !dead[static_cast<std::size_t>(value.index)];
  };
  const auto readable = [&](const Argument& argument) {
    if (const auto* const value = std::get_if<ValueId>(&argument)) return usable(*value);
    const auto* const list = std::get_if<std::vector<std::optional<ValueId>>>(&argument);
    return list == nullptr || std::all_of(list->begin(), list->end(), [&](const auto& value) {
             return !value || usable(*value);
           });
  };
  for (const ValueId value : graph.unread) dead[static_cast<std::size_t>(value.index)] = true;
  for (const Node& node : graph.nodes) {
    if (!find_operation(node.operation)) return "an operation that is not allowed";
    for (const Argument& argument : node.args) {
      if (!readable(argument)) return "a value that is not there";
    }
    for (const auto& [name, argument] : node.kwargs) {
      if (!readable(argument)) return "a value that is not there";
    }
    if (node.first_result.index != values) return "values that are not in a row";
    values += node.results;
    for (const ValueId value : node.dies) {
      if (!usable(value)) return "a value that dies twice";
      dead[static_cast<std::size_t>(value.index)] = true;
    }
  }
  if (values != graph.values) return "another number of values";
  for (const auto& [role, value] : graph.gives) {
    if (!usable(value)) return "a value is given that is not there";
  }
  return "";
}

inline std::string wrong_with_package(std::string_view text) {
  static const std::string kSource = "package.json";
  const auto package = parse_package(text, kSource);
  if (!package.ok()) {
    return wrong_error(package.error(), {ErrorCode::kConfig, ErrorCode::kCorrupt}, kSource);
  }
  if (std::string wrong = wrong_with_inputs(package->inputs); !wrong.empty()) return wrong;
  for (const LayerGraph& graph : package->graphs) {
    for (const Graph* part :
         {&graph.forward, &graph.input_part, &graph.weight_part, &graph.evaluate}) {
      if (std::string wrong = wrong_with_graph(*part); !wrong.empty()) return wrong;
    }
    if (graph.score) {
      if (std::string wrong = wrong_with_graph(*graph.score); !wrong.empty()) return wrong;
    }
  }
  for (const PackageLayer& layer : package->layers) {
    if (layer.graph < 0 || layer.graph >= static_cast<int>(package->graphs.size()) ||
        layer.signature.empty()) {
      return "a layer without its graph";
    }
  }
  return "";
}

}  // namespace motley
