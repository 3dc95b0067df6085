// What a node of a graph should have made: the same operation once more, on the host, of contiguous
// copies in double precision where it has that, else in fp32. Finds a kernel that
// computes otherwise than its schema says. Private to models/graph.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "models/package/graph.h"

namespace motley {

// How far the fp32 results of the node among `values` are from that, as a share of their norm;
// nothing where it cannot be told. `values`: of the graph, with all that the node took. `samples`:
// B of the micro-batch.
[[nodiscard]] std::optional<double> node_deviation(const Node& node,
                                                   const std::vector<at::Tensor>& values,
                                                   std::int64_t samples);

}  // namespace motley
