#include "models/spec/layer_memory.h"

#include <set>
#include <string_view>

#include "base/check.h"

namespace motley {
namespace {

constexpr std::int64_t kFloatBytes = 4;
constexpr std::int64_t kTokenBytes = 8;  // token ids are int64

// T positions of width D; a norm saves mean and deviation of each position.
struct Shape {
  std::int64_t t = 0;
  std::int64_t d = 0;
  std::int64_t heads = 0;
  std::int64_t vocab = 0;
};

LayerMemory memory_of(const std::string& kind, const Shape& shape, AttentionPath path) {
  const auto [t, d, heads, vocab] = shape;
  const std::int64_t row = kFloatBytes * t;
  const std::int64_t norm = 2 * row;
  if (kind == "gpt2.embed") {
    return {kTokenBytes * t, 0, row * 2 * d};
  }
  if (kind == "gpt2.attn") {
    // x, its norm, queries, keys and values, the heads.
    return {row * 6 * d + attention_saved_bytes(path, heads, t, kFloatBytes) + norm, row * 6 * d,
            row * 7 * d};
  }
  if (kind == "gpt2.mlp") {
    return {row * 6 * d + norm, row * 10 * d, row * 7 * d};
  }
  if (kind == "mlp.input") {
    return {kTokenBytes * t + row * 2 * d, kTokenBytes * t + row * 2 * d, row * 2 * d};
  }
  if (kind == "mlp.hidden") {
    return {row * 3 * d + norm, row * 2 * d, row * 4 * d};
  }
  MOTLEY_CHECK(kind.ends_with(".head"), "layer kind {} has no formula", kind);
  return {row * (2 * d + vocab) + norm, row * (d + vocab), row * 2 * d};
}

}  // namespace

PersistentMemory persistent_memory(const ModelSpec& model,
                                   int first,
                                   int last,
                                   int moments_per_parameter) {
  PersistentMemory memory;
  std::set<std::string_view> constants;
  std::set<std::string_view> updated;
  for (int l = first; l < last; ++l) {
    const LayerSpec& layer = model.layers[static_cast<std::size_t>(l)];
    for (const ConstantSpec& constant : layer.constants) {
      if (constants.insert(constant.name).second) memory.constant_bytes += constant.bytes;
    }
    for (const ParameterSpec& parameter : layer.parameters) {
      const std::int64_t bytes = parameter.count() * kFloatBytes;
      memory.value_bytes += bytes;
      memory.gradient_bytes += bytes;
      if (parameter.statistic_momentum || !updated.insert(parameter.name).second) continue;
      memory.moment_bytes += bytes * moments_per_parameter;
    }
  }
  return memory;
}

LayerMemory native_layer_memory(const ModelSpec& model, int layer) {
  return native_layer_memory(model, layer, AttentionPath::kExplicit);
}

LayerMemory native_layer_memory(const ModelSpec& model, int layer, AttentionPath path) {
  const LayerSpec& spec = model.layers[static_cast<std::size_t>(layer)];
  // Every boundary is as wide as the first.
  const std::int64_t width = model.layers.front().outputs.front().back();
  return memory_of(spec.kind,
                   {model.tokens_per_sample, width, spec.heads, model.sample.target_limit}, path);
}

}  // namespace motley
