// Whether the roles of a layer's graphs fit each other and the layer. Private to models/package.
#pragma once

#include <string>

#include "models/package/graph.h"
#include "models/package/package.h"

namespace motley {

// How many of each role a layer graph speaks of. What its parts must agree on is checked while it
// is made, so that each of the many layers with this graph takes a few comparisons.
struct RoleCounts {
  int inputs = 0;  // at least so many stand before the layer
  int input_grads = 0;
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

// Why this layer cannot have this graph, or "". `inputs`: how many tensors it takes.
[[nodiscard]] std::string misfit(const RoleCounts& roles,
                                 const PackageLayer& layer,
                                 std::size_t inputs,
                                 bool is_first);

}  // namespace motley
