// Layer: the smallest unit of placement of a model, with an explicit forward and backward.
//
// Layers compute their own gradients instead of recording an autograd graph. The tensors saved
// between forward and backward are therefore known to the planner, and gradients are added directly
// to the stage's flat arena. A layer of another library can still implement this interface by
// recording a graph internally.
//
// The native layers have two implementations: CPU kernels, and ATen operations for every other
// device (models/layers/device). Both are deterministic on one device, but their bits differ.
// Inputs and outputs are on the layer's device.
//
// Shapes: B samples, T tokens, D width. Activations and their gradients are contiguous, with the
// sizes and types of models/layers/boundary_layout.h; in the native layers, fp32 x_BTD.
// ProductDtype describes the use of bf16 and fp16 inside a layer. Threads: one thread per layer
// object.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "models/layers/product_dtype.h"
#include "models/spec/initialize.h"
#include "models/spec/loss_options.h"
#include "models/spec/model_spec.h"
#include "models/spec/prediction_counts.h"

namespace motley {

class PreparedPackage;

// The position of a forward in the training. Dropout masks and random draws depend on it, and never
// on ranks or earlier computation.
struct MicroContext {
  std::int64_t seed = 0;
  std::int64_t step = 0;
  std::int64_t micro = 0;
  bool training = true;           // false: no dropout, and nothing is saved for backward
  std::int64_t first_sample = 0;  // index of micro-batch 0's first sample: among the held-out
                                  // samples in evaluation; 0 in training
};

// The tensors that a layer saves from forward to backward, in its own order.
using SavedTensors = std::vector<at::Tensor>;

class Layer {
 public:
  virtual ~Layer() = default;

  // x: the previous layer's output, or for the first layer the data's inputs (tokens: int64, B x
  // T). May use x's memory for its result; the caller does not read x afterwards. Fills `saved` if
  // micro.training.
  [[nodiscard]] virtual at::Tensor forward(at::Tensor x,
                                           const MicroContext& micro,
                                           SavedTensors& saved) = 0;

  // Backward has two parts, so that a schedule can send the gradient of x before the rest is done.
  // Micro-batches run each part in their order. The weight part adds the same terms whenever it
  // runs, so the gradients' bits do not depend on its time.
  //
  // The input part: returns the gradient of x (an undefined tensor for the first layer). Gradients
  // that are by-products, such as a norm's, are added already. Leaves in `saved` what the weight
  // part needs, which may include grad_output: the layer owns it from here on. The result shares no
  // memory with `saved`.
  [[nodiscard]] virtual at::Tensor backward_input(at::Tensor grad_output,
                                                  const MicroContext& micro,
                                                  SavedTensors& saved) = 0;
  // The weight part: adds this micro-batch's other gradients. Consumes `saved`.
  virtual void backward_weight(SavedTensors& saved) = 0;
};

// The result of a loss on the layer's device, perhaps not computed yet. Reading it waits for the
// device, so a step reads those of its micro-batches together.
struct LossTotals {
  at::Tensor numbers;  // of LossLayer::Outcome: {loss_sum, count}, {loss_sum, count, correct} or,
                       // in evaluation, {loss_sum, count} and what is counted of the predictions;
                       // fp64, or fp32 if the device has no fp64
};

// The last layer of a chain: its forward ends in a loss.
class LossLayer {
 public:
  virtual ~LossLayer() = default;

  struct Outcome {
    double loss_sum = 0;  // over all terms of the micro-batch, such as its tokens
    // The number of terms; if the loss weights classes, the sum of the terms' weights.
    double count = 0;
    std::optional<double> correct;  // the correct predictions among `count`, if counted
    std::optional<PredictionCounts> predictions = {};  // in evaluation, if counted
  };

  // targets: the data's (tokens: int64, B x T). If micro.training, saves what backward needs; the
  // gradient that backward_input returns is that of loss_sum.
  [[nodiscard]] virtual LossTotals forward(at::Tensor x,
                                           const at::Tensor& targets,
                                           const MicroContext& micro,
                                           SavedTensors& saved) = 0;
  // Converts the numbers, once they are on the host. Throws GraphFailure if the graph of a package
  // returns an invalid count.
  [[nodiscard]] virtual Outcome read(const at::Tensor& host_totals) const = 0;
  // As Layer's two parts.
  [[nodiscard]] virtual at::Tensor backward_input(const MicroContext& micro,
                                                  SavedTensors& saved) = 0;
  virtual void backward_weight(SavedTensors& saved) = 0;

  // The scores of the token after one position of a text, B x V, for sampling.
  [[nodiscard]] virtual at::Tensor logits_at(at::Tensor x, std::int64_t position) = 0;
};

// A layer's parameters and gradients: tensors that are views into the stage's flat arenas, in the
// order of LayerSpec::parameters. They outlive the layer.
struct LayerParameters {
  std::vector<at::Tensor> values;
  std::vector<at::Tensor> gradients;
  std::vector<at::Tensor> rounded;  // `values` in the dtype of products; themselves in fp32
};

struct LayerContext {
  ModelConfig model;
  int index = 0;                             // in the model's chain; decides dropout streams
  std::shared_ptr<PreparedPackage> package;  // of a package's model, else nullptr
  c10::Device device{c10::kCPU};             // where parameters and activations lie
  ProductDtype product_dtype;
  bool plain_operations = false;  // native layers of other devices also on the CPU, for tests
  LossOptions loss;               // of native models
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
