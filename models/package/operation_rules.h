// Rules for the arguments of a few operations, beyond their schemas: their kernels write to an
// argument, or use one without a check. Private to models/package.
#pragma once

#include <string>

#include "models/package/graph.h"

namespace motley {

// Why the node must not run, or "".
[[nodiscard]] std::string broken_rule(const Node& node);

}  // namespace motley
