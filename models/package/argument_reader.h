// Reads an argument of a node from JSON. Private to models/package.
#pragma once

#include <string>

#include "base/json_fwd.h"
#include "models/package/graph.h"

namespace motley {

// The names of dtypes in packages: "float32", "int64", "bool"; nullopt for narrow ones.
[[nodiscard]] std::optional<Dtype> dtype_of(std::string_view text);
// The same with narrow ones: "bfloat16", "float16", "int8", "uint8".
[[nodiscard]] std::optional<Dtype> constant_type_of(std::string_view text);
[[nodiscard]] std::string_view dtype_name(Dtype type);

struct ReadArgument {
  Argument argument;
  std::string fault;  // why it cannot be read, or ""
};

// `values`: the number of values defined before the node.
[[nodiscard]] ReadArgument read_argument(const Json& json, int values);

}  // namespace motley
