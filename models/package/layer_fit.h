// Whether the roles of a layer's graphs fit each other and the layer. Private to models/package.
#pragma once

#include <string>
#include <vector>

#include "models/package/graph.h"
#include "models/package/package.h"

namespace motley {

// How many of each role a layer graph speaks of. What its parts must agree on is checked while it
// is made, so that each of the many layers with this graph takes a few comparisons.
struct RoleCounts {
  int inputs = 0;                // at least so many stand before the layer
  std::vector<int> input_grads;  // the inputs whose gradients are given, ascending
  std::vector<int> grads;        // the outputs whose gradients are taken
  int outputs = 0;
  int parameters = 0;
  int constants = 0;  // at least
  int statistics = 0;
};

struct RoleCountsOr {
  RoleCounts roles;
  std::string fault;  // how the parts contradict each other, or ""
};

[[nodiscard]] RoleCountsOr roles_of(const LayerGraph& graph, bool is_last);

// Why this layer cannot have this graph, or "". `inputs`: the tensors that it takes.
[[nodiscard]] std::string misfit(const RoleCounts& roles,
                                 const PackageLayer& layer,
                                 const std::vector<BoundarySpec>& inputs);

}  // namespace motley
