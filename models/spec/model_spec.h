// ModelSpec: what a model is made of, without tensors: its layers in order, their parameters and
// what crosses their boundaries. The planner, the checkpoint and the launcher read this; the torch
// layers of models/ must hold exactly these parameters (a test checks it).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "job/config.h"

namespace motley {

inline constexpr double kLayerNormEpsilon = 1e-5;  // of every family

// How a parameter starts; drawn by name, so that every device creates the same values.
struct InitRule {
  enum class Kind { kNormal, kUniform, kConstant };
  Kind kind = Kind::kConstant;
  double scale = 0.0;  // normal: standard deviation; uniform: half-width; constant: the value
};

struct ParameterSpec {
  std::string name;  // Hugging Face's, e.g. "h.0.attn.c_attn.weight"
  std::vector<std::int64_t> shape;
  InitRule init;
  bool decayed = false;  // weight decay applies
  // A tied use: this layer computes with the parameter of the same name that an earlier layer owns.
  // It has a gradient of its own and is stored once.
  bool tied_use = false;

  [[nodiscard]] std::int64_t count() const;
};

struct LayerSpec {
  std::string name;  // "embed", "h.0.attn", "h.0.mlp", "head"
  std::string kind;  // "gpt2.embed", "gpt2.attn", "gpt2.mlp", "gpt2.head", "mlp.input", …
  // Equal signatures mean equal shapes and cost: such layers are measured once.
  std::string signature;
  std::vector<ParameterSpec> parameters;
  int heads = 0;                              // of an attention layer: what its shapes do not show
  std::int64_t output_floats_per_sample = 0;  // what crosses the boundary after it (0 for the last)
  double forward_flops_per_sample = 0;

  [[nodiscard]] std::int64_t parameter_count() const;  // tied uses included
};

struct ModelSpec {
  std::string family;  // "gpt2", "mlp"
  std::vector<LayerSpec> layers;
  std::int64_t tokens_per_sample = 0;
  std::int64_t vocab = 0;

  [[nodiscard]] std::vector<std::string> layer_names() const;
  // Distinct parameters, tied ones once.
  [[nodiscard]] std::int64_t parameter_count() const;
  // Names the model's structure (layers, names, shapes): equal hash, exchangeable checkpoints.
  [[nodiscard]] std::string hash() const;

  // The layers that share parameters across the model, if any: {owner, user}.
  struct TiedPair {
    int owner_layer = 0;
    int user_layer = 0;
    std::string parameter;
  };

  [[nodiscard]] std::optional<TiedPair> tied_pair() const;
};

// kConfig when the sizes do not make a model (heads not dividing width, …).
[[nodiscard]] Result<ModelSpec> describe_model(const ModelConfig& config);

}  // namespace motley
