// The family of models that are packages: described by what motley.export wrote.
#pragma once

#include "base/result.h"
#include "job/config.h"
#include "models/spec/layer_memory.h"
#include "models/spec/model_spec.h"

namespace motley {

// What read_package returns where config.path does not hold a sound package.
[[nodiscard]] Result<ModelSpec> describe_package(const ModelConfig& config);

// As its package says. REQUIRES: a model of a package, 0 <= layer < model.layers.size().
[[nodiscard]] LayerMemory package_layer_memory(const ModelSpec& model, int layer);

}  // namespace motley
