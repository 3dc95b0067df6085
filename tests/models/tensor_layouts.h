// Layouts of tensors in memory, for tests of what must not depend on them; the same ones as in
// tests/python/operation_cases.py.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace motley::testing {

struct TensorLayout {
  const char* name;
  // Another tensor of the same shape, of the same values or, where memory is repeated, of some of
  // them; nothing where it would be no other. The tensor is contiguous.
  std::function<std::optional<at::Tensor>(const at::Tensor&)> lay_out;
};

[[nodiscard]] const std::vector<TensorLayout>& tensor_layouts();

}  // namespace motley::testing
