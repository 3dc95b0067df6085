// A value of model.kind: the description of its layers and their memory. Their computing is defined
// in models/layers/layer_factory.cc.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "models/spec/layer_memory.h"
#include "models/spec/model_spec.h"
#include "models/spec/native_families.h"
#include "models/spec/package_family.h"

namespace motley {
namespace {

struct ModelFamily {
  std::string_view kind;  // value of model.kind and ModelSpec::family
  Result<ModelSpec> (*describe)(const ModelConfig& config);
  LayerMemory (*memory)(const ModelSpec& model, int layer, std::int64_t value_bytes);
};

constexpr std::array kFamilies = {
    ModelFamily{"gpt2", describe_gpt2, native_layer_memory},
    ModelFamily{"mlp", describe_mlp, native_layer_memory},
    ModelFamily{"package", describe_package, package_layer_memory},
};

// nullptr when there is none.
const ModelFamily* find_family(std::string_view kind) {
  const auto found = std::ranges::find(kFamilies, kind, &ModelFamily::kind);
  return found == kFamilies.end() ? nullptr : &*found;
}

}  // namespace

Result<ModelSpec> describe_model(const ModelConfig& config) {
  if (const ModelFamily* family = find_family(config.kind)) return family->describe(config);
  std::vector<std::string_view> kinds;
  for (const ModelFamily& family : kFamilies) kinds.push_back(family.kind);
  return with_key({ErrorCode::kConfig, fmt::format("unknown model.kind = \"{}\"", config.kind), "",
                   fmt::format("use {}", fmt::join(kinds, ", "))},
                  "model.kind");
}

LayerMemory layer_memory(const ModelSpec& model, int layer, std::int64_t value_bytes) {
  const ModelFamily* family = find_family(model.family);
  MOTLEY_CHECK(family != nullptr, "a model of family '{}'", model.family);
  return family->memory(model, layer, value_bytes);
}

}  // namespace motley
