// Checks that the roles of a layer's graphs match each other and the layer. Private to
// models/package.
#pragma once

#include <string>
#include <vector>

#include "models/package/graph.h"
#include "models/package/package.h"

namespace motley {

// The number of values in each role of a layer graph. Contradictions between its parts are found
// when this is computed, so checking each of the many layers with this graph takes a few
// comparisons.
struct RoleCounts {
  int inputs = 0;                // at least this many inputs
  std::vector<int> input_grads;  // inputs whose gradients are returned, ascending
  std::vector<int> grads;        // outputs whose gradients are used
  int outputs = 0;
  int parameters = 0;
  int constants = 0;  // at least
  int statistics = 0;
};

struct RoleCountsOr {
  RoleCounts roles;
  std::string fault;  // the contradiction between the parts, or ""
};

[[nodiscard]] RoleCountsOr roles_of(const LayerGraph& graph, bool is_last);

// Why this layer cannot have this graph, or "". `inputs`: its input tensors.
[[nodiscard]] std::string misfit(const RoleCounts& roles,
                                 const PackageLayer& layer,
                                 const std::vector<BoundarySpec>& inputs);

}  // namespace motley
