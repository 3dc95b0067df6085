// Errors planted in the graphs of a package, as an exporter, a copy or a kernel could introduce
// them.
#pragma once

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "models/package/package.h"

namespace motley::testing {

// The graphs of one layer by index: forward, input part, weight part, evaluation.
inline std::vector<Graph*> parts_of(Package& package, int layer) {
  const int graph = package.layers[static_cast<std::size_t>(layer)].graph;
  LayerGraph& parts = package.graphs[static_cast<std::size_t>(graph)];
  return {&parts.forward, &parts.input_part, &parts.weight_part, &parts.evaluate};
}

inline void replace_uses(Graph& graph, std::size_t first_node, ValueId old, ValueId with) {
  const auto replace = [&](Argument& argument) {
    if (auto* const value = std::get_if<ValueId>(&argument); value != nullptr && *value == old) {
      *value = with;
    }
    auto* const list = std::get_if<std::vector<std::optional<ValueId>>>(&argument);
    if (list == nullptr) return;
    for (auto& value : *list) {
      if (value && *value == old) value = with;
    }
  };
  for (std::size_t n = first_node; n < graph.nodes.size(); ++n) {
    for (Argument& argument : graph.nodes[n].args) replace(argument);
    for (auto& [name, argument] : graph.nodes[n].kwargs) replace(argument);
  }
  for (auto& [role, value] : graph.gives) {
    if (value == old) value = with;
  }
  // Memory does not matter here: all values live to the end.
  for (Node& node : graph.nodes) node.dies.clear();
  graph.unread.clear();
}

// Multiplies the first result of a node by `factor`.
inline void scale_result(Graph& graph, std::size_t node, double factor) {
  const ValueId old = graph.nodes[node].first_result;
  const ValueId scaled{graph.values++};
  replace_uses(graph, node + 1, old, scaled);
  Node scale;
  scale.operation = "aten::mul.Tensor";
  scale.args = {Argument(old), Argument(factor)};
  scale.first_result = scaled;
  scale.results = 1;
  graph.nodes.insert(graph.nodes.begin() + static_cast<std::ptrdiff_t>(node) + 1, scale);
}

// Replaces the node's result by its first argument, which drops for example a factor or a
// transposition. Returns false if that argument is not a tensor.
inline bool drop_node(Graph& graph, std::size_t node) {
  const auto* const source = std::get_if<ValueId>(&graph.nodes[node].args.at(0));
  if (source == nullptr) return false;
  replace_uses(graph, 0, graph.nodes[node].first_result, *source);
  return true;
}

}  // namespace motley::testing
