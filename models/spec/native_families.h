// The families whose layers are written here rather than brought in a package.
#pragma once

#include "base/result.h"
#include "job/config.h"
#include "models/spec/model_spec.h"

namespace motley {

// kConfig when the sizes do not make a model.
[[nodiscard]] Result<ModelSpec> describe_gpt2(const ModelConfig& config);
[[nodiscard]] Result<ModelSpec> describe_mlp(const ModelConfig& config);

}  // namespace motley
