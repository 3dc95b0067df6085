// Recomputes the result of a node: the same operation on the host, on contiguous copies in double
// precision if it supports that, else in fp32. Detects a kernel that deviates from its schema.
// Private to models/graph.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "models/package/graph.h"

namespace motley {

// The relative deviation, in norm, of the node's fp32 results among `values` from the recomputed
// ones; nullopt if it cannot be determined. `values`: of the graph, with all arguments of the node.
// `samples`: B of the micro-batch.
[[nodiscard]] std::optional<double> node_deviation(const Node& node,
                                                   const std::vector<at::Tensor>& values,
                                                   std::int64_t samples);

}  // namespace motley
