// ModelSpec: what a model is made of, without tensors: its layers in order, their parameters and
// what crosses their boundaries. The planner, the checkpoint and the launcher read this; the torch
// layers of models/ must hold exactly these parameters (a test checks it).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/boundary_size.h"
#include "base/folder_mark.h"
#include "base/result.h"
#include "job/config.h"
#include "models/package/tensor_spec.h"
#include "models/spec/sample_format.h"

namespace motley {

struct Package;

inline constexpr double kLayerNormEpsilon = 1e-5;  // of the native families

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
  // Moved by what training sees instead of by a gradient, such as a BatchNorm's running mean: its
  // place among the gradients takes what each micro-batch observed, and a step goes this share of
  // the way to their mean.
  std::optional<double> statistic_momentum;

  [[nodiscard]] std::int64_t count() const;
};

// What a layer computes with and nothing changes: frozen weights, masks, tables. Layers that name
// the same one share it.
struct ConstantSpec {
  std::string name;
  std::int64_t values = 0;
  std::int64_t bytes = 0;
};

struct LayerSpec {
  std::string name;  // "embed", "h.0.attn", "h.0.mlp", "head"
  std::string kind;  // "gpt2.embed", "gpt2.attn", "gpt2.mlp", "gpt2.head", "mlp.input", …
  // Equal signatures mean equal shapes and cost: such layers are measured once.
  std::string signature;
  std::vector<ParameterSpec> parameters;
  std::vector<ConstantSpec> constants;
  int heads = 0;  // of an attention layer: what its shapes do not show
  // Whether what a layer keeps for its backward has all that it gets, and all that it hands on: the
  // next one then keeps the same memory.
  bool keeps_input = false;
  bool keeps_output = false;
  // Shapes of the fp32 tensors of a sample that cross the boundary after it and have a gradient;
  // none for the last.
  std::vector<std::vector<std::int64_t>> outputs;
  // Those that cross it beside them without a gradient, and are transferred bit-exactly.
  std::vector<TensorSpec> exact_outputs;
  double forward_flops_per_sample = 0;
  // Of backward's two parts. What is frozen has no product in the second.
  double input_part_flops_per_sample = 0;
  double weight_part_flops_per_sample = 0;

  // What crosses the boundary after it, of that many samples.
  [[nodiscard]] BoundarySize boundary(std::int64_t samples) const;
  [[nodiscard]] std::int64_t parameter_count() const;  // tied uses included
  [[nodiscard]] std::int64_t constant_bytes() const;
};

struct ModelSpec {
  std::string family;  // "gpt2", "mlp", "package"
  std::vector<LayerSpec> layers;
  SampleFormat sample;
  // What people count a sample as, and the loss is a mean of: its tokens; 1 for an image.
  std::int64_t tokens_per_sample = 0;
  std::string unit = "tokens";             // what those are for people: tokens or samples
  std::shared_ptr<const Package> package;  // the layers' graphs; null for the native families

  // How many of `unit` a sample is, for rates: a picture is one, however many terms its loss has.
  [[nodiscard]] std::int64_t units_per_sample() const {
    return unit == "tokens" ? tokens_per_sample : 1;
  }

  [[nodiscard]] std::vector<std::string> layer_names() const;
  // Whether it has parameters that are statistics of micro-batches: then their size is part of what
  // is learned.
  [[nodiscard]] bool keeps_statistics() const;
  // Distinct parameters, tied ones once.
  [[nodiscard]] std::int64_t parameter_count() const;
  // Of its distinct constants together, those that layers share once.
  [[nodiscard]] std::int64_t constant_values() const;
  [[nodiscard]] std::int64_t constant_bytes() const;
  // What every machine must have besides the programs, of a model of a package.
  [[nodiscard]] std::optional<FolderMark> package_mark() const;

  // What people should know of layers that no machine can compare with PyTorch's: "" where all of a
  // package have a reference, and for other models. kCorrupt when the references are damaged.
  [[nodiscard]] Result<std::string> missing_references() const;
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

// kConfig when the sizes do not make a model (heads not dividing width, …); what read_package
// returns when the folder of a package cannot be read.
[[nodiscard]] Result<ModelSpec> describe_model(const ModelConfig& config);

}  // namespace motley
