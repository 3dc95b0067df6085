// ModelFamilies: what a value of model.kind means to all that only counts: how its layers are
// described, and what they keep in memory. How they compute is models/layers/layer_factory.cc's.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "job/config.h"
#include "models/spec/layer_memory.h"
#include "models/spec/model_spec.h"

namespace motley {

struct ModelFamily {
  std::string_view kind;  // of model.kind, and ModelSpec::family
  Result<ModelSpec> (*describe)(const ModelConfig& config);
  LayerMemory (*memory)(const ModelSpec& model, int layer);
};

[[nodiscard]] std::span<const ModelFamily> model_families();

// nullptr when there is none.
[[nodiscard]] const ModelFamily* find_family(std::string_view kind);

}  // namespace motley
