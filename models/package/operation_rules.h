// What must hold of the arguments of a few operations, beyond their schema: whose kernels write to
// an argument, or trust one, against what they promise. Private to models/package.
#pragma once

#include <string>

#include "models/package/graph.h"

namespace motley {

// Why the node may not run, or "".
[[nodiscard]] std::string broken_rule(const Node& node);

}  // namespace motley
