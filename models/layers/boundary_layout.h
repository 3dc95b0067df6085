// All tensors of a boundary packed into one tensor, and their gradients packed into another.
//
// If every tensor of the boundary has a gradient, the packed tensor is fp32. A single tensor keeps
// its sizes {B, shape…}; several become one flat tensor of consecutive blocks [B, shape…]. If some
// tensors have no gradient, it is a flat byte tensor: first the blocks of the tensors with a
// gradient, then the blocks of the others, both in their order and without gaps. The packed
// gradient is fp32, has blocks only for the tensors with a gradient, and may be empty.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "models/package/tensor_spec.h"
#include "models/spec/model_spec.h"

namespace motley {

// Sizes and type of a packed tensor.
struct BoundaryLayout {
  std::vector<std::int64_t> sizes;
  at::ScalarType type = at::kFloat;
  std::int64_t floats = 0;  // number of fp32 elements at its start
};

// The layouts of the activation at the boundary after the layer, and of its gradient.
[[nodiscard]] BoundaryLayout activation_layout(const LayerSpec& layer, std::int64_t samples);
[[nodiscard]] BoundaryLayout gradient_layout(const LayerSpec& layer, std::int64_t samples);

// Packs these tensors. May return a lone tensor itself.
[[nodiscard]] at::Tensor join_boundary(const std::vector<at::Tensor>& with_gradient,
                                       const std::vector<at::Tensor>& exact);

// The number of elements of the packed tensor per sample.
[[nodiscard]] std::int64_t elements_per_sample(const std::vector<BoundarySpec>& specs);

// Packs these tensors. REQUIRES: they have the types and sizes of `specs`, in their order.
[[nodiscard]] at::Tensor pack_boundary(const std::vector<at::Tensor>& tensors,
                                       const std::vector<BoundarySpec>& specs);
// Unpacks the tensors of a boundary. They may share the memory of x.
[[nodiscard]] std::vector<at::Tensor> unpack_boundary(const at::Tensor& x,
                                                      const std::vector<BoundarySpec>& specs,
                                                      std::int64_t samples);

// The same for gradients; undefined for tensors without one. `device`: of the result.
[[nodiscard]] at::Tensor pack_gradients(const std::vector<at::Tensor>& gradients,
                                        const std::vector<BoundarySpec>& specs,
                                        c10::Device device);
[[nodiscard]] std::vector<at::Tensor> unpack_gradients(const at::Tensor& gradient,
                                                       const std::vector<BoundarySpec>& specs,
                                                       std::int64_t samples);

}  // namespace motley
