// Whether a layer's results may differ by more than rounding although all of its kernels are right.
// For a value at the kink of a ReLU, or for two equal maxima, the last bit of a kernel's result
// decides where a part of the gradient goes. Private to models/graph.
#pragma once

#include "models/package/graph.h"

namespace motley {

// Whether an operation of the forward graph, or its derivative, is discontinuous at some value.
[[nodiscard]] bool has_turning_points(const Graph& forward);

}  // namespace motley
