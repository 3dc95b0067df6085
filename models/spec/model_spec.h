// ModelSpec: the structure of a model without tensors: its layers in order, their parameters and
// the tensors at their boundaries. The planner, the checkpoint and the launcher read it; the torch
// layers of models/ must hold exactly these parameters (a test checks it).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/folder_fingerprint.h"
#include "base/result.h"
#include "base/wire_sizes.h"
#include "models/package/tensor_spec.h"
#include "models/spec/sample_format.h"
#include "run_config/config.h"

namespace motley {

struct Package;

inline constexpr double kLayerNormEpsilon = 1e-5;  // of the native families

// The initial values of a parameter; drawn by name, so that every device creates the same values.
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
  // It has a gradient of its own and is saved once.
  bool tied_use = false;
  // Set for a statistic, such as a BatchNorm's running mean, which training observes instead of
  // computing its gradient. Its place among the gradients accumulates the observations of
  // micro-batches, and a step moves it by this share towards their mean.
  std::optional<double> statistic_momentum;

  [[nodiscard]] std::int64_t count() const;
};

// A constant of layers: frozen weights, masks, tables. Layers that name the same one share it.
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
  int heads = 0;  // of an attention layer; not visible in its shapes
  // Whether the tensors that a layer saves for backward include all its inputs, and all its
  // outputs. An output that is saved by its layer and as the next one's input uses the same memory.
  bool keeps_input = false;
  bool keeps_output = false;
  // Shapes, for one sample, of the fp32 tensors with a gradient at the boundary after the layer;
  // none for the last layer.
  std::vector<std::vector<std::int64_t>> outputs;
  // The tensors without a gradient at this boundary, which are transferred bit-exactly.
  std::vector<TensorSpec> exact_outputs;
  double forward_flops_per_sample = 0;
  // Of backward's two parts. Frozen weights have no product in the second.
  double input_part_flops_per_sample = 0;
  double weight_part_flops_per_sample = 0;

  // The size of the boundary after the layer for that many samples.
  [[nodiscard]] BoundarySize boundary(std::int64_t samples) const;
  [[nodiscard]] std::int64_t parameter_count() const;  // tied uses included
  [[nodiscard]] std::int64_t constant_bytes() const;
};

struct ModelSpec {
  std::string family;  // "gpt2", "mlp", "package"
  std::vector<LayerSpec> layers;
  SampleFormat sample;
  // The number of units in a sample, over which the loss is a mean: its tokens; 1 for an image.
  std::int64_t tokens_per_sample = 0;
  std::string unit = "tokens";             // the unit in reports: tokens or samples
  std::shared_ptr<const Package> package;  // the layers' graphs; nullptr for the native families

  // The number of `unit` in a sample, for rates: an image counts once, however many terms its loss
  // has.
  [[nodiscard]] std::int64_t units_per_sample() const {
    return unit == "tokens" ? tokens_per_sample : 1;
  }

  [[nodiscard]] std::vector<std::string> layer_names() const;
  // Whether it has parameters that are statistics of micro-batches: then the micro-batch size
  // affects training.
  [[nodiscard]] bool keeps_statistics() const;
  // Of distinct parameters; tied ones count once.
  [[nodiscard]] std::int64_t parameter_count() const;
  // Of distinct constants; shared ones count once.
  [[nodiscard]] std::int64_t constant_values() const;
  [[nodiscard]] std::int64_t constant_bytes() const;
  // Fingerprint of the package that every machine must have, for a model of a package.
  [[nodiscard]] std::optional<FolderFingerprint> package_fingerprint() const;

  // A warning about layers that no machine can compare with PyTorch's; "" if all layers of a
  // package have a reference, and for other models. kCorrupt if the references are damaged.
  [[nodiscard]] Result<std::string> missing_references() const;
  // Identifies the model's structure (layers, names, shapes): equal hash, exchangeable checkpoints.
  [[nodiscard]] std::string hash() const;

  // The layers that share parameters across the model, if any: {owner, user}.
  struct TiedPair {
    int owner_layer = 0;
    int user_layer = 0;
    std::string parameter;
  };

  [[nodiscard]] std::optional<TiedPair> tied_pair() const;
};

// kConfig if the sizes do not form a model (heads not dividing width, …); the error of read_package
// if the folder of a package cannot be read.
[[nodiscard]] Result<ModelSpec> describe_model(const ModelConfig& config);

}  // namespace motley
