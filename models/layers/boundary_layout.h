// The one tensor in which all that crosses a boundary lies, and the one of its gradient.
//
// Where every tensor of the boundary has a gradient it is fp32: of the sizes {B, shape…} of the one
// that crosses, or flat with the blocks [B, shape…] of several, one behind the other. Where some
// have none it is flat and of bytes: the blocks of those with a gradient first, behind them those
// of the others, each in their order, without gaps. The gradient has the blocks of the tensors with
// a gradient alone, as fp32, and may have no element.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "models/package/tensor_spec.h"
#include "models/spec/model_spec.h"

namespace motley {

// Of such a tensor.
struct BoundaryLayout {
  std::vector<std::int64_t> sizes;
  at::ScalarType type = at::kFloat;
  std::int64_t floats = 0;  // it begins with so many
};

// Of what crosses the boundary after the layer, and of what comes back.
[[nodiscard]] BoundaryLayout activation_layout(const LayerSpec& layer, std::int64_t samples);
[[nodiscard]] BoundaryLayout gradient_layout(const LayerSpec& layer, std::int64_t samples);

// The tensor of these. May be the only one of them.
[[nodiscard]] at::Tensor join_boundary(const std::vector<at::Tensor>& with_gradient,
                                       const std::vector<at::Tensor>& exact);

// How many elements of the tensor a sample has.
[[nodiscard]] std::int64_t elements_per_sample(const std::vector<BoundarySpec>& specs);

// The tensor of these. REQUIRES: they have the types and sizes of `specs`, in their order.
[[nodiscard]] at::Tensor pack_boundary(const std::vector<at::Tensor>& tensors,
                                       const std::vector<BoundarySpec>& specs);
// What lies in it, which may share its memory.
[[nodiscard]] std::vector<at::Tensor> unpack_boundary(const at::Tensor& x,
                                                      const std::vector<BoundarySpec>& specs,
                                                      std::int64_t samples);

// The same of gradients; undefined where a tensor has none. `device`: of the result.
[[nodiscard]] at::Tensor pack_gradients(const std::vector<at::Tensor>& gradients,
                                        const std::vector<BoundarySpec>& specs,
                                        c10::Device device);
[[nodiscard]] std::vector<at::Tensor> unpack_gradients(const at::Tensor& gradient,
                                                       const std::vector<BoundarySpec>& specs,
                                                       std::int64_t samples);

}  // namespace motley
