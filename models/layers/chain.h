// LayerChain: a contiguous run of a model's layers with the memory of its parameters.
//
// Values lie in one flat arena, gradients in another (parameter_memory.h says how), on the chain's
// device, as all tensors that it takes and gives. Off the host it returns before the device has
// computed, and waits for it in forward_loss alone.
//
// Micro-batches may be forwarded ahead of their backward, each kept under its number.
// Threads: one at a time. The caller holds c10::InferenceMode around every call, construction
// included. Results are a function of inputs and parameters: the same bits on every call.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "models/layers/layer.h"
#include "models/layers/parameter_memory.h"

namespace motley {

// How a chain computes.
struct ChainOptions {
  // Only the input (and the targets) of a micro-batch is kept, and backward runs forward again
  // first: the same bits for less memory and more time.
  bool recompute = false;
  c10::Device device{c10::kCPU};
  bool plain_operations = false;         // LayerContext
  at::ScalarType products = at::kFloat;  // ProductNumbers
};

class LayerChain {
 public:
  static constexpr std::size_t kAlignment = ParameterMemory::kAlignment;
  using Parameter = ParameterMemory::Parameter;

  // The layers [first, last) of the model. REQUIRES: spec == describe_model(config),
  // 0 <= first < last <= layers. Values and gradients start at 0. Throws GraphFailure where a
  // package's graphs cannot run here.
  LayerChain(const ModelConfig& config,
             const ModelSpec& spec,
             int first,
             int last,
             const ChainOptions& options = {});

  [[nodiscard]] bool begins_with_input() const { return first_ == 0; }

  [[nodiscard]] bool ends_in_loss() const { return loss_layer_ != nullptr; }

  // In the order of the layers. Write values at will between a backward and the next forward; where
  // products are not fp32, up to begin().
  [[nodiscard]] const std::vector<Parameter>& parameters() const { return memory_.parameters(); }

  // The arenas; as spans on the host, elsewhere those are empty.
  [[nodiscard]] const at::Tensor& values_tensor() const { return memory_.values_tensor(); }

  [[nodiscard]] const at::Tensor& gradients_tensor() const { return memory_.gradients_tensor(); }

  [[nodiscard]] std::span<float> values() { return memory_.values(); }

  [[nodiscard]] std::span<float> gradients() { return memory_.gradients(); }

  // Every parameter's first values, by name.
  void initialize(std::int64_t seed) { memory_.initialize(seed); }

  // A batch begins: products take the values as they are now, and gradients go into them with this
  // scale (ProductNumbers).
  void begin(double gradient_scale);

  // x: the data's inputs for the first layer, else what the layer before returned
  // (models/layers/boundary_layout.h). Owned by the chain from here on; its memory may be used.
  // REQUIRES: !ends_in_loss(); when training, this micro has nothing kept.
  [[nodiscard]] at::Tensor forward(at::Tensor x, const MicroContext& micro);
  // Adds to the gradients; returns the gradient of x (undefined when begins_with_input()).
  // grad_output is the chain's from here on.
  // REQUIRES: forward ran for this micro in training; no weight part is left to do.
  [[nodiscard]] at::Tensor backward(at::Tensor grad_output, const MicroContext& micro);
  // The same in two parts: backward_input returns the gradient of x, backward_weight adds the
  // gradients of the parameters (some, such as the norms', are added by the first already). In
  // between, what the second needs is kept under the micro-batch's number.
  // REQUIRES: micro-batches pass each part in the order that backward would have had, or the
  // sums' bits differ; backward_weight: backward_input or backward_loss_input ran for this micro.
  [[nodiscard]] at::Tensor backward_input(at::Tensor grad_output, const MicroContext& micro);
  void backward_weight(std::int64_t micro);

  // In the next backward or backward_weight: called after each layer, with the index in gradients()
  // from which on it changes no more.
  using OnFinal = std::function<void(std::size_t first)>;

  void tell_final(OnFinal on_final) { on_final_ = std::move(on_final); }

  // The same for a chain that ends in the loss. REQUIRES: ends_in_loss().
  [[nodiscard]] LossLayer::Outcome forward_loss(at::Tensor x,
                                                const at::Tensor& targets,
                                                const MicroContext& micro);
  // The same without waiting for the device; read_loss reads the numbers once they are copied to
  // the host.
  [[nodiscard]] LossNumbers forward_loss_unread(at::Tensor x,
                                                const at::Tensor& targets,
                                                const MicroContext& micro);
  [[nodiscard]] LossLayer::Outcome read_loss(const at::Tensor& host_numbers) const;
  [[nodiscard]] at::Tensor backward_loss(const MicroContext& micro);
  [[nodiscard]] at::Tensor backward_loss_input(const MicroContext& micro);
  [[nodiscard]] at::Tensor logits_at(at::Tensor x,
                                     std::int64_t position,
                                     const MicroContext& micro);

  // What is kept for one micro-batch until its backward or between the parts of it, in bytes;
  // memory that layers share counts once.
  [[nodiscard]] std::int64_t saved_bytes(std::int64_t micro) const;

  // Forgets every micro-batch that waits for its backward or a part of it (an abandoned step).
  void drop_saved();

 private:
  // What a recomputing chain keeps of a micro-batch.
  struct Inputs {
    at::Tensor x;
    at::Tensor targets;  // where the chain ends in the loss
  };

  // All but the loss layer, filling `saved`, one entry a layer; with nullptr nothing is kept.
  [[nodiscard]] at::Tensor forward_inner(at::Tensor x,
                                         const MicroContext& micro,
                                         std::vector<SavedTensors>* saved);

  // Whether this forward is to be run again by its backward.
  [[nodiscard]] bool repeats(const MicroContext& micro) const {
    return recompute_ && micro.training;
  }

  // All layers' input parts from the last to the first. With weights = true each layer's weight
  // part at once, so that what it keeps is gone before the next layer's turn.
  [[nodiscard]] at::Tensor backward_inner(at::Tensor grad,
                                          const MicroContext& micro,
                                          std::vector<SavedTensors>& saved,
                                          bool weights);
  [[nodiscard]] at::Tensor backward_loss_inner(const MicroContext& micro,
                                               std::vector<SavedTensors>& saved,
                                               bool weights);
  void keep_for_weights(const MicroContext& micro, std::vector<SavedTensors> saved);
  // What the forward of this micro-batch kept, one entry a layer, or a second forward keeps now.
  // Only training micro-batches are remembered.
  [[nodiscard]] std::vector<SavedTensors> take_saved(const MicroContext& micro);
  void keep_inputs(const MicroContext& micro, Inputs inputs);
  void keep_saved(const MicroContext& micro, std::vector<SavedTensors> saved);

  int first_;
  bool recompute_;
  ProductNumbers numbers_;
  ParameterMemory memory_;
  OnFinal on_final_;                                         // of the next backward
  std::vector<std::unique_ptr<Layer>> layers_;               // all but a loss layer
  std::unique_ptr<LossLayer> loss_layer_;                    // may be null
  std::map<std::int64_t, std::vector<SavedTensors>> saved_;  // [micro][layer]
  std::map<std::int64_t, std::vector<SavedTensors>> parts_;  // [micro][layer], between the parts
  std::map<std::int64_t, Inputs> inputs_;                    // [micro], when recomputing
};

}  // namespace motley
