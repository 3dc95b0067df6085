// Parts of package.json that can be read independently. kCorrupt, naming the position, if one does
// not follow docs/formats/package.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/json/json_fields.h"
#include "base/result.h"
#include "models/package/package.h"

namespace motley {

[[nodiscard]] Result<std::string> read_name(const JsonFields& fields, const char* key);

// The member "shape".
[[nodiscard]] Result<std::vector<std::int64_t>> read_shape(const JsonFields& fields);

// The member "inputs" of a package whose inputs have names.
[[nodiscard]] Result<std::vector<SampleInput>> read_named_inputs(const JsonFields& fields);
// The members "input" and "input_limit" of other packages.
[[nodiscard]] Result<std::vector<SampleInput>> read_only_input(const JsonFields& fields);

// The data's target, or its only input, and the limit of its integers.
[[nodiscard]] Result<TensorSpec> read_sample(const JsonFields& fields, const char* key);
[[nodiscard]] Result<std::int64_t> read_limit(const JsonFields& fields,
                                              const char* key,
                                              const TensorSpec& tensor);

// The layer without its signature, which depends on its graph. `version`: the package's; `graphs`:
// the number of its graphs.
[[nodiscard]] Result<PackageLayer> read_layer(const JsonFields& fields,
                                              std::int64_t version,
                                              std::size_t graphs,
                                              bool is_last);

// `layer` is the name of one with the graph, for errors.
[[nodiscard]] Result<LayerGraph> read_layer_graph(const JsonFields& fields,
                                                  bool is_last,
                                                  const std::string& layer);

}  // namespace motley
