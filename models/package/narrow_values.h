// Whether graphs convert constants of narrow types before they compute with them. Private to
// models/package.
#pragma once

#include <string>
#include <vector>

#include "models/package/graph.h"

namespace motley {

// Why a layer with this graph computes with a constant of a narrow type or hands one on, or "".
// What is narrow may be converted by aten::_to_copy to another type, and else only be taken by
// operations of python/motley/narrow_operations.txt, which make narrow values. `narrow`:
// [constant] whether the layer's is; one of them at least.
[[nodiscard]] std::string narrow_fault(const LayerGraph& graph, const std::vector<bool>& narrow);

}  // namespace motley
