#include "models/spec/layer_memory.h"

#include <set>
#include <string_view>

#include "base/check.h"

namespace motley {
namespace {

constexpr std::int64_t kTokenBytes = 8;  // token ids are int64

// T positions of width D; a norm saves mean and deviation of each position.
struct Shape {
  std::int64_t t = 0;
  std::int64_t d = 0;
  std::int64_t heads = 0;
  std::int64_t vocab = 0;
  std::int64_t value_bytes = kFp32Bytes;  // between products
};

LayerMemory memory_of(const std::string& kind, const Shape& shape, AttentionPath path) {
  const auto [t, d, heads, vocab, value_bytes] = shape;
  const std::int64_t row = kFp32Bytes * t;
  const std::int64_t values = value_bytes * t;
  const std::int64_t norm = 2 * row;
  if (kind == "gpt2.embed") {
    return {kTokenBytes * t, 0, row * 2 * d};
  }
  if (kind == "gpt2.attn") {
    // x, its norm, queries, keys and values, the heads.
    return {row * d + values * 5 * d + attention_saved_bytes(path, heads, t, value_bytes) + norm,
            values * 6 * d, row * 7 * d};
  }
  if (kind == "gpt2.mlp") {
    return {row * d + values * 5 * d + norm, values * 10 * d, row * 7 * d};
  }
  if (kind == "mlp.input") {
    return {kTokenBytes * t + values * 2 * d, kTokenBytes * t + values * 2 * d, row * 2 * d};
  }
  if (kind == "mlp.hidden") {
    return {row * d + values * 2 * d + norm, values * 2 * d, row * 4 * d};
  }
  MOTLEY_CHECK(kind.ends_with(".head"), "layer kind {} has no formula", kind);
  return {row * d + values * (d + vocab) + norm, values * (d + vocab), row * 2 * d};
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
      const std::int64_t bytes = parameter.count() * kFp32Bytes;
      memory.value_bytes += bytes;
      memory.gradient_bytes += bytes;
      if (parameter.statistic_momentum || !updated.insert(parameter.name).second) continue;
      memory.moment_bytes += bytes * moments_per_parameter;
    }
  }
  return memory;
}

LayerMemory native_layer_memory(const ModelSpec& model, int layer, std::int64_t value_bytes) {
  return native_layer_memory(model, layer, AttentionPath::kExplicit, value_bytes);
}

LayerMemory native_layer_memory(const ModelSpec& model,
                                int layer,
                                AttentionPath path,
                                std::int64_t value_bytes) {
  const LayerSpec& spec = model.layers[static_cast<std::size_t>(layer)];
  // Every boundary is as wide as the first.
  const std::int64_t width = model.layers.front().outputs.front().back();
  return memory_of(
      spec.kind,
      {model.tokens_per_sample, width, spec.heads, model.sample.target_limit, value_bytes}, path);
}

}  // namespace motley
