// Whether a layer's results may differ by more than rounding where all of its kernels are right:
// where a value lies at the kink of a ReLU, or two are the largest, the last bit of another kernel
// decides, and a part of the gradient goes another way. Private to models/graph.
#pragma once

#include "models/package/graph.h"

namespace motley {

// Whether an operation of the forward graph, or its derivative, jumps at some value.
[[nodiscard]] bool has_turning_points(const Graph& forward);

}  // namespace motley
