// LayerChain: a contiguous run of a model's layers with the memory of its parameters.
//
// Values are in one flat arena, gradients in another (layout: parameter_memory.h), on the chain's
// device, as are all inputs and outputs. On a device other than the host, calls return before it
// has computed; only forward_loss waits for it.
//
// Micro-batches may be forwarded ahead of their backward; each is saved under its number. Used by
// one thread at a time. The caller holds c10::InferenceMode around every call, construction
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
  // Activation checkpointing: only the input (and the targets) of a micro-batch is saved, and
  // backward first runs forward again. The same bits for less memory and more time.
  bool recompute = false;
  c10::Device device{c10::kCPU};
  bool plain_operations = false;         // LayerContext
  at::ScalarType products = at::kFloat;  // ProductDtype
  LossOptions loss = {};                 // LayerContext
};

class LayerChain {
 public:
  static constexpr std::size_t kAlignment = ParameterMemory::kAlignment;
  using Parameter = ParameterMemory::Parameter;

  // The layers [first, last) of the model. REQUIRES: spec == describe_model(config), 0 <= first <
  // last <= layers. Values and gradients start at 0. Throws GraphFailure if a package's graphs
  // cannot run here.
  LayerChain(const ModelConfig& config,
             const ModelSpec& spec,
             int first,
             int last,
             const ChainOptions& options = {});

  [[nodiscard]] bool begins_with_input() const { return first_ == 0; }

  [[nodiscard]] bool ends_in_loss() const { return loss_layer_ != nullptr; }

  // In the order of the layers. Values may be written between a backward and the next forward; if
  // products are not fp32, only until begin().
  [[nodiscard]] const std::vector<Parameter>& parameters() const { return memory_.parameters(); }

  // The arenas; as spans on the host, and empty on other devices.
  [[nodiscard]] const at::Tensor& values_tensor() const { return memory_.values_tensor(); }

  [[nodiscard]] const at::Tensor& gradients_tensor() const { return memory_.gradients_tensor(); }

  [[nodiscard]] std::span<float> values() { return memory_.values(); }

  [[nodiscard]] std::span<float> gradients() { return memory_.gradients(); }

  // Sets every parameter to its initial values, by name.
  void initialize(std::int64_t seed) { memory_.initialize(seed); }

  // Called at the start of a batch: products use the values as they are now, and gradients enter
  // them with this scale (ProductDtype).
  void begin(double gradient_scale);

  // x: the data's inputs for the first layer, else the previous layer's output
  // (models/layers/boundary_layout.h). The chain takes ownership and may overwrite its memory.
  // REQUIRES: !ends_in_loss(); in training, nothing is saved for this micro-batch.
  [[nodiscard]] at::Tensor forward(at::Tensor x, const MicroContext& micro);
  // Adds to the gradients; returns the gradient of x (undefined if begins_with_input()). Takes
  // ownership of grad_output. REQUIRES: forward ran for this micro in training; no weight part is
  // pending.
  [[nodiscard]] at::Tensor backward(at::Tensor grad_output, const MicroContext& micro);
  // The same in two parts: backward_input returns the gradient of x, backward_weight adds the
  // gradients of the parameters (the first already adds some, such as the norms'). In between, the
  // inputs of the second part are saved under the micro-batch's number. REQUIRES: micro-batches run
  // each part in the order of whole backwards, or the bits of sums differ; backward_weight:
  // backward_input or backward_loss_input ran for this micro.
  [[nodiscard]] at::Tensor backward_input(at::Tensor grad_output, const MicroContext& micro);
  void backward_weight(std::int64_t micro);

  // For the next backward or backward_weight: called after each layer, with the index in
  // gradients() from which on they are final.
  using OnReady = std::function<void(std::size_t first)>;

  void notify_ready(OnReady on_ready) { on_ready_ = std::move(on_ready); }

  // The same for a chain that ends in the loss. REQUIRES: ends_in_loss().
  [[nodiscard]] LossLayer::Outcome forward_loss(at::Tensor x,
                                                const at::Tensor& targets,
                                                const MicroContext& micro);
  // The same without waiting for the device; read_loss reads the numbers after they are copied to
  // the host.
  [[nodiscard]] LossTotals forward_loss_unread(at::Tensor x,
                                               const at::Tensor& targets,
                                               const MicroContext& micro);
  [[nodiscard]] LossLayer::Outcome read_loss(const at::Tensor& host_totals) const;
  [[nodiscard]] at::Tensor backward_loss(const MicroContext& micro);
  [[nodiscard]] at::Tensor backward_loss_input(const MicroContext& micro);
  [[nodiscard]] at::Tensor logits_at(at::Tensor x,
                                     std::int64_t position,
                                     const MicroContext& micro);

  // Bytes saved for one micro-batch until its backward, or between the two parts of it; memory that
  // layers share counts once.
  [[nodiscard]] std::int64_t saved_bytes(std::int64_t micro) const;

  // Drops what is saved for all micro-batches that wait for their backward or a part of it (an
  // abandoned step).
  void drop_saved();

 private:
  // The saved inputs of a micro-batch with activation checkpointing.
  struct Inputs {
    at::Tensor x;
    at::Tensor targets;  // if the chain ends in the loss
  };

  // Runs all layers except the loss layer and fills `saved`, one entry a layer; nullptr: saves
  // nothing.
  [[nodiscard]] at::Tensor forward_inner(at::Tensor x,
                                         const MicroContext& micro,
                                         std::vector<SavedTensors>* saved);

  // Whether backward runs this forward again.
  [[nodiscard]] bool repeats(const MicroContext& micro) const {
    return recompute_ && micro.training;
  }

  // Runs all layers' input parts from the last to the first. With weights = true also each layer's
  // weight part at once, which releases what the layer saved before the next layer runs.
  [[nodiscard]] at::Tensor backward_inner(at::Tensor grad,
                                          const MicroContext& micro,
                                          std::vector<SavedTensors>& saved,
                                          bool weights);
  [[nodiscard]] at::Tensor backward_loss_inner(const MicroContext& micro,
                                               std::vector<SavedTensors>& saved,
                                               bool weights);
  void keep_for_weights(const MicroContext& micro, std::vector<SavedTensors> saved);
  // The tensors that the forward of this micro-batch saved, one entry a layer, or that a second
  // forward saves now. Only training micro-batches are stored.
  [[nodiscard]] std::vector<SavedTensors> take_saved(const MicroContext& micro);
  void keep_inputs(const MicroContext& micro, Inputs inputs);
  void keep_saved(const MicroContext& micro, std::vector<SavedTensors> saved);

  int first_;
  bool recompute_;
  ProductDtype product_dtype_;
  ParameterMemory memory_;
  OnReady on_ready_;                                         // of the next backward
  std::vector<std::unique_ptr<Layer>> layers_;               // all but a loss layer
  std::unique_ptr<LossLayer> loss_layer_;                    // may be null
  std::map<std::int64_t, std::vector<SavedTensors>> saved_;  // [micro][layer]
  std::map<std::int64_t, std::vector<SavedTensors>> parts_;  // [micro][layer], between both parts
  std::map<std::int64_t, Inputs> inputs_;                    // [micro], when recomputing
};

}  // namespace motley
