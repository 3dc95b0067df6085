// AttentionCore: causal attention on a device between the layer's two products: from queries, keys
// and values to the outputs of the heads, and back. One implementation for each path. Private to
// models/.
//
// Matrices: R rows, one a position of a sample; the heads' outputs beside each other, D wide; qkv
// holds queries, keys and values beside each other, 3 D wide.
#pragma once

#include <cstdint>
#include <memory>

#include <ATen/core/Tensor.h>

#include "models/layers/layer.h"
#include "models/spec/attention_path.h"

namespace motley {

class AttentionCore {
 public:
  virtual ~AttentionCore() = default;

  [[nodiscard]] virtual AttentionPath path() const = 0;

  // Returns the outputs; `tokens` rows are a sample. If micro.training, fills `kept` with what
  // backward needs besides its other arguments.
  [[nodiscard]] virtual at::Tensor forward(const at::Tensor& qkv,
                                           std::int64_t tokens,
                                           const MicroContext& micro,
                                           SavedTensors& kept) = 0;

  // Returns the gradient of qkv from that of `outputs`, the result of forward.
  [[nodiscard]] virtual at::Tensor backward(const at::Tensor& grad_outputs,
                                            const at::Tensor& qkv,
                                            const at::Tensor& outputs,
                                            std::int64_t tokens,
                                            const MicroContext& micro,
                                            const SavedTensors& kept) = 0;
};

// For any device and LibTorch.
[[nodiscard]] std::unique_ptr<AttentionCore> make_explicit_attention(const LayerContext& context);

// The fused core (fused_attention.cc) if the model's attention may be fused and this LibTorch and
// the device have the operations for values of this type, else the explicit one. A function of
// model, device and type: it does not depend on the plan.
[[nodiscard]] std::unique_ptr<AttentionCore> make_attention_core(const LayerContext& context,
                                                                 at::ScalarType type);

}  // namespace motley
