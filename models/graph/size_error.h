// Checks the integer arguments of a graph node for invalid sizes. Private to models/graph.
#pragma once

#include <string>

#include "models/graph/node_arguments.h"

namespace motley {

// Returns why an integer among these arguments is invalid, or "" if none is. Invalid are a size of
// a result with more than kTensorCountMax elements, which is found here before a kernel allocates
// it, and a value below 1 that kernels divide by without a check.
[[nodiscard]] std::string size_error(const NodeArguments& arguments,
                                     const c10::FunctionSchema& schema);

}  // namespace motley
