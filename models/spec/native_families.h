// The built-in families, which are not packages.
#pragma once

#include "base/result.h"
#include "models/spec/model_spec.h"
#include "run_config/config.h"

namespace motley {

// kConfig if the sizes do not form a model.
[[nodiscard]] Result<ModelSpec> describe_gpt2(const ModelConfig& config);
[[nodiscard]] Result<ModelSpec> describe_mlp(const ModelConfig& config);

}  // namespace motley
