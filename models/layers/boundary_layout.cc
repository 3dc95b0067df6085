#include "models/layers/boundary_layout.h"

#include <algorithm>
#include <cstddef>

#include <ATen/ATen.h>

#include "base/check.h"
#include "models/graph/scalar_type.h"

namespace motley {
namespace {

using Tensors = std::vector<at::Tensor>;

bool has_exact(const std::vector<BoundarySpec>& specs) {
  return !std::ranges::all_of(specs, &BoundarySpec::gradient);
}

at::Tensor flat_bytes(const at::Tensor& tensor) {
  // A dimension of one element may have any stride, and then its bytes cannot be viewed.
  return tensor.contiguous().as_strided({tensor.numel()}, {1}).view(at::kByte);
}

// A block of bytes as a tensor of the type in `spec`, still flat.
at::Tensor meant_by(at::Tensor block, const BoundarySpec& spec) {
  // Bytes other than 0 and 1 are not valid truth values.
  if (spec.type == Dtype::kBool) return block.ne(0);
  const at::ScalarType type = scalar_type(spec.type);
  // view() requires an offset that is a multiple of the element size.
  const auto number_bytes = static_cast<std::int64_t>(c10::elementSize(type));
  if (block.storage_offset() % number_bytes != 0) block = block.clone();
  return block.view(type);
}

}  // namespace

BoundaryLayout activation_layout(const LayerSpec& layer, std::int64_t samples) {
  if (layer.exact_outputs.empty()) return gradient_layout(layer, samples);
  const BoundarySize size = layer.boundary(samples);
  return {{size.bytes()}, at::kByte, size.floats};
}

BoundaryLayout gradient_layout(const LayerSpec& layer, std::int64_t samples) {
  const std::int64_t floats = layer.boundary(samples).floats;
  if (layer.outputs.size() != 1) return {{floats}, at::kFloat, floats};
  return {TensorSpec{Dtype::kFloat32, layer.outputs.front()}.sizes(samples), at::kFloat, floats};
}

at::Tensor join_boundary(const Tensors& with_gradient, const Tensors& exact) {
  Tensors blocks;
  if (exact.empty()) {
    if (with_gradient.size() == 1) return with_gradient.front().contiguous();
    for (const at::Tensor& tensor : with_gradient) blocks.push_back(tensor.reshape({-1}));
    return at::cat(blocks);
  }
  for (const Tensors* const tensors : {&with_gradient, &exact}) {
    for (const at::Tensor& tensor : *tensors) blocks.push_back(flat_bytes(tensor));
  }
  return at::cat(blocks);
}

std::int64_t elements_per_sample(const std::vector<BoundarySpec>& specs) {
  const bool are_bytes = has_exact(specs);
  std::int64_t elements = 0;
  for (const BoundarySpec& spec : specs) elements += are_bytes ? spec.bytes() : spec.count();
  return elements;
}

at::Tensor pack_boundary(const Tensors& tensors, const std::vector<BoundarySpec>& specs) {
  Tensors with_gradient;
  Tensors exact;
  for (std::size_t k = 0; k < specs.size(); ++k) {
    (specs[k].gradient ? with_gradient : exact).push_back(tensors[k]);
  }
  return join_boundary(with_gradient, exact);
}

Tensors unpack_boundary(const at::Tensor& x,
                        const std::vector<BoundarySpec>& specs,
                        std::int64_t samples) {
  if (!has_exact(specs)) return unpack_gradients(x, specs, samples);
  MOTLEY_CHECK(x.scalar_type() == at::kByte, "exact values between layers must be bytes");
  const at::Tensor flat = x.view({-1});
  Tensors tensors(specs.size());
  std::int64_t place = 0;
  for (const bool gradient : {true, false}) {
    for (std::size_t k = 0; k < specs.size(); ++k) {
      if (specs[k].gradient != gradient) continue;
      const std::int64_t bytes = samples * specs[k].bytes();
      tensors[k] = meant_by(flat.narrow(0, place, bytes), specs[k]).view(specs[k].sizes(samples));
      place += bytes;
    }
  }
  return tensors;
}

at::Tensor pack_gradients(const Tensors& gradients,
                          const std::vector<BoundarySpec>& specs,
                          c10::Device device) {
  Tensors given;
  for (std::size_t k = 0; k < specs.size(); ++k) {
    if (specs[k].gradient) given.push_back(gradients[k]);
  }
  if (given.empty()) return at::empty({0}, at::TensorOptions(device).dtype(at::kFloat));
  return join_boundary(given, {});
}

Tensors unpack_gradients(const at::Tensor& gradient,
                         const std::vector<BoundarySpec>& specs,
                         std::int64_t samples) {
  const at::Tensor flat = gradient.view({-1});
  Tensors gradients(specs.size());
  std::int64_t place = 0;
  for (std::size_t k = 0; k < specs.size(); ++k) {
    if (!specs[k].gradient) continue;
    const std::int64_t count = samples * specs[k].count();
    gradients[k] = flat.narrow(0, place, count).view(specs[k].sizes(samples));
    place += count;
  }
  return gradients;
}

}  // namespace motley
