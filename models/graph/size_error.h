// Numbers among a node's arguments that cannot be meant. Private to models/graph.
#pragma once

#include <string>

#include "models/graph/node_arguments.h"

namespace motley {

// Why a number among these arguments cannot be meant, or "": it asks for a tensor of a size that no
// package has, which is found before a kernel allocates it, or is 0 where kernels divide by it
// without a look.
[[nodiscard]] std::string size_error(const NodeArguments& arguments,
                                     const c10::FunctionSchema& schema);

}  // namespace motley
