// The family of models from packages, which motley.export writes.
#pragma once

#include "base/result.h"
#include "models/spec/layer_memory.h"
#include "models/spec/model_spec.h"
#include "run_config/config.h"

namespace motley {

// The error of read_package if config.path does not hold a valid package.
[[nodiscard]] Result<ModelSpec> describe_package(const ModelConfig& config);

// As given in its package. REQUIRES: a model of a package, 0 <= layer < model.layers.size().
[[nodiscard]] LayerMemory package_layer_memory(const ModelSpec& model,
                                               int layer,
                                               std::int64_t value_bytes);

}  // namespace motley
