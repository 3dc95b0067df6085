// Memory layouts of tensors, for tests of layout independence; the same as in
// tests/python/operation_cases.py.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace motley::testing {

struct TensorLayout {
  const char* name;
  // REQUIRES: the argument is contiguous. Returns a tensor of the same shape with the same values,
  // or with repeated ones if memory is repeated; nullopt if the layout would not differ.
  std::function<std::optional<at::Tensor>(const at::Tensor&)> lay_out;
};

[[nodiscard]] const std::vector<TensorLayout>& tensor_layouts();

}  // namespace motley::testing
