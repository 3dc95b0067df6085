// Layer: one placeable piece of a model with an explicit forward and backward.
//
// Layers compute their own gradients instead of recording an autograd graph: what is kept between
// forward and backward is visible (and so plannable), gradients are added straight into the stage's
// flat arena, and nothing else happens on the way. A layer from another library can still be put
// behind this interface by recording a graph inside it.
//
// The native layers exist twice: in the CPU's kernels, and in ATen's operations for every other
// device (models/layers/device), which promise the same of bits on one device, but other bits than
// the CPU's. Tensors that come and go lie on the layer's device.
//
// Shapes: B samples, T tokens, D width. Activations and their gradients are contiguous, of the
// sizes and the type in models/layers/boundary_layout.h; fp32 x_BTD in the native layers. What a
// layer does inside in bf16 or fp16 is ProductNumbers' affair. Threads: one thread per layer
// object.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "models/layers/product_numbers.h"
#include "models/spec/initialize.h"
#include "models/spec/model_spec.h"

namespace motley {

class PreparedPackage;

// Where a forward stands in the training; decides dropout masks. Never a rank, never history.
struct MicroContext {
  std::int64_t seed = 0;
  std::int64_t step = 0;
  std::int64_t micro = 0;
  bool training = true;  // false: no dropout, nothing is kept for backward
};

// What a layer keeps from forward to backward, in an order of its own.
using SavedTensors = std::vector<at::Tensor>;

class Layer {
 public:
  virtual ~Layer() = default;

  // x: the previous layer's output, or for the first layer the data's inputs (tokens: int64, B x
  // T). May use x's memory for its result; the caller does not read x afterwards. Fills `saved`
  // when micro.training.
  [[nodiscard]] virtual at::Tensor forward(at::Tensor x,
                                           const MicroContext& micro,
                                           SavedTensors& saved) = 0;

  // Backward comes in two parts, so that a schedule can hand the gradient of x on before the rest
  // is done. Micro-batches pass each part in their order, and the weight part adds the same terms
  // whenever it runs: the gradients' bits do not depend on when that is.
  //
  // The input part: returns the gradient of x (an undefined tensor for the first layer). Gradients
  // that fall off on the way, such as a norm's, are added already. Leaves in `saved` what the
  // weight part needs, which may be grad_output: it is the layer's from here on. The result shares
  // no memory with what is kept.
  [[nodiscard]] virtual at::Tensor backward_input(at::Tensor grad_output,
                                                  const MicroContext& micro,
                                                  SavedTensors& saved) = 0;
  // The weight part: adds this micro-batch's other gradients. Consumes `saved`.
  virtual void backward_weight(SavedTensors& saved) = 0;
};

// What a loss came to, on the layer's device and perhaps not computed yet: reading it waits for the
// device, so a step reads those of its micro-batches together.
struct LossNumbers {
  at::Tensor numbers;  // {loss_sum, tokens} or {loss_sum, tokens, correct} of LossLayer::Outcome;
                       // fp64, or fp32 where the device has no fp64
};

// The last layer of a chain: its forward ends in a loss.
class LossLayer {
 public:
  virtual ~LossLayer() = default;

  struct Outcome {
    double loss_sum = 0;  // over all terms of the micro-batch, such as its tokens
    // How many terms there are; where the loss weighs classes, the sum of the terms' weights.
    double count = 0;
    std::optional<double> correct;  // of the count, what was predicted right, where counted
  };

  // targets: the data's (tokens: int64, B x T). When micro.training keeps what backward needs; the
  // gradient that backward_input returns is that of loss_sum.
  [[nodiscard]] virtual LossNumbers forward(at::Tensor x,
                                            const at::Tensor& targets,
                                            const MicroContext& micro,
                                            SavedTensors& saved) = 0;
  // What such numbers say, once they lie on the host. Throws GraphFailure where the graph of a
  // package counts what is no count.
  [[nodiscard]] virtual Outcome read(const at::Tensor& host_numbers) const = 0;
  // As Layer's two parts.
  [[nodiscard]] virtual at::Tensor backward_input(const MicroContext& micro,
                                                  SavedTensors& saved) = 0;
  virtual void backward_weight(SavedTensors& saved) = 0;

  // The scores of what follows one position of a text, B x V, for sampling.
  [[nodiscard]] virtual at::Tensor logits_at(at::Tensor x, std::int64_t position) = 0;
};

// A layer's parameters and gradients: tensors that are views into the stage's flat arenas, in the
// order of LayerSpec::parameters. They outlive the layer.
struct LayerParameters {
  std::vector<at::Tensor> values;
  std::vector<at::Tensor> gradients;
  std::vector<at::Tensor> rounded;  // the values in the numbers of products; in fp32 themselves
};

struct LayerContext {
  ModelConfig model;
  int index = 0;                             // in the model's chain; decides dropout streams
  std::shared_ptr<PreparedPackage> package;  // of a model that is one, else null
  c10::Device device{c10::kCPU};             // where parameters and activations lie
  ProductNumbers numbers;
  bool plain_operations = false;  // native layers as on any other device also on the CPU, for tests
};

// REQUIRES: spec is one of describe_model(context.model).layers, and not the last.
[[nodiscard]] std::unique_ptr<Layer> make_layer(const LayerSpec& spec,
                                                const LayerContext& context,
                                                LayerParameters parameters);
// REQUIRES: spec is the last.
[[nodiscard]] std::unique_ptr<LossLayer> make_loss_layer(const LayerSpec& spec,
                                                         const LayerContext& context,
                                                         LayerParameters parameters);

}  // namespace motley
