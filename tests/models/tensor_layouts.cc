#include "tests/models/tensor_layouts.h"

#include <cstdint>
#include <limits>

#include <ATen/ATen.h>

namespace motley::testing {
namespace {

using MaybeTensor = std::optional<at::Tensor>;

// The contents of the gaps of a layout.
at::Scalar filler(const at::Tensor& t) {
  if (t.is_floating_point()) return std::numeric_limits<double>::quiet_NaN();
  return t.scalar_type() == at::kBool ? 1 : 0;
}

MaybeTensor in_order(const at::Tensor& t, const std::vector<std::int64_t>& order) {
  std::vector<std::int64_t> back(order.size());
  for (std::size_t k = 0; k < order.size(); ++k) {
    back[static_cast<std::size_t>(order[k])] = static_cast<std::int64_t>(k);
  }
  return t.permute(order).contiguous().permute(back);
}

MaybeTensor transposed(const at::Tensor& t) {
  if (t.dim() < 2) return std::nullopt;
  std::vector<std::int64_t> order;
  for (std::int64_t dim = t.dim(); dim-- > 0;) order.push_back(dim);
  return in_order(t, order);
}

MaybeTensor swapped(const at::Tensor& t) {
  if (t.dim() < 3) return std::nullopt;
  return t.transpose(-1, -2).contiguous().transpose(-1, -2);
}

MaybeTensor channels_last(const at::Tensor& t) {
  if (t.dim() < 3) return std::nullopt;
  std::vector<std::int64_t> order = {0};
  for (std::int64_t dim = 2; dim < t.dim(); ++dim) order.push_back(dim);
  order.push_back(1);
  return in_order(t, order);
}

// A slice of a larger tensor: the larger one has size `width` in `dim`, the slice has every
// `step`-th index from `first` on.
MaybeTensor part(const at::Tensor& t,
                 std::int64_t dim,
                 std::int64_t width,
                 std::int64_t first,
                 std::int64_t step) {
  std::vector<std::int64_t> sizes = t.sizes().vec();
  sizes[static_cast<std::size_t>(dim)] = width;
  const std::int64_t end = step > 1 ? width : first + t.size(dim);
  at::Tensor shown = at::full(sizes, filler(t), t.options()).slice(dim, first, end, step);
  shown.copy_(t);
  return shown;
}

MaybeTensor gaps(const at::Tensor& t) {
  if (t.dim() == 0) return std::nullopt;
  return part(t, t.dim() - 1, 2 * t.size(-1) + 1, 1, 2);
}

MaybeTensor rows(const at::Tensor& t) {
  if (t.dim() == 0) return std::nullopt;
  return part(t, t.dim() - 1, t.size(-1) + 3, 2, 1);
}

MaybeTensor planes(const at::Tensor& t) {
  if (t.dim() < 2) return std::nullopt;
  return part(t, 1, t.size(1) + 2, 1, 1);
}

MaybeTensor transposed_rows(const at::Tensor& t) {
  if (t.dim() < 2) return std::nullopt;
  std::vector<std::int64_t> order;
  for (std::int64_t dim = t.dim(); dim-- > 0;) order.push_back(dim);
  return rows(t.permute(order).contiguous())->permute(order);
}

MaybeTensor repeated_in(const at::Tensor& t, std::int64_t dim) {
  if (t.dim() < 2 || t.numel() == 0) return std::nullopt;
  return t.narrow(dim, 0, 1).expand(t.sizes());
}

MaybeTensor repeated(const at::Tensor& t) {
  if (t.dim() == 0 || t.numel() == 0) return std::nullopt;
  const std::vector<std::int64_t> ones(static_cast<std::size_t>(t.dim()), 1);
  return t.flatten().narrow(0, 0, 1).view(ones).expand(t.sizes());
}

MaybeTensor overlapping(const at::Tensor& t) {
  if (t.dim() < 2 || t.numel() == 0) return std::nullopt;
  std::vector<std::int64_t> strides(static_cast<std::size_t>(t.dim()), 1);
  std::int64_t next = t.size(-1) + t.size(-2) - 1;
  for (std::int64_t dim = t.dim() - 2; dim-- > 0;) {
    strides[static_cast<std::size_t>(dim)] = next;
    next *= t.size(dim);
  }
  return t.contiguous().as_strided(t.sizes(), strides);
}

MaybeTensor strides_of_ones(const at::Tensor& t) {
  std::vector<std::int64_t> strides = t.strides().vec();
  bool has_ones = false;
  for (std::size_t dim = 0; dim < strides.size(); ++dim) {
    if (t.sizes()[dim] != 1) continue;
    strides[dim] = 7;
    has_ones = true;
  }
  if (!has_ones) return std::nullopt;
  return t.as_strided(t.sizes(), strides);
}

}  // namespace

const std::vector<TensorLayout>& tensor_layouts() {
  static const std::vector<TensorLayout> kLayouts = {
      {"transposed", transposed},
      {"swapped", swapped},
      {"channels last", channels_last},
      {"gaps", gaps},
      {"rows", rows},
      {"planes", planes},
      {"transposed rows", transposed_rows},
      {"repeated first", [](const at::Tensor& t) { return repeated_in(t, 0); }},
      {"repeated second",
       [](const at::Tensor& t) { return t.dim() < 3 ? std::nullopt : repeated_in(t, 1); }},
      {"repeated last", [](const at::Tensor& t) { return repeated_in(t, -1); }},
      {"repeated", repeated},
      {"overlapping", overlapping},
      {"strides of ones", strides_of_ones},
  };
  return kLayouts;
}

}  // namespace motley::testing
