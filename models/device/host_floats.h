// A tensor's memory as spans.
#pragma once

#include <cstddef>
#include <span>

#include <ATen/core/Tensor.h>

#include "base/check.h"

namespace motley {

// Empty for a tensor on a device. REQUIRES: contiguous fp32.
[[nodiscard]] inline std::span<float> floats_of(const at::Tensor& tensor) {
  MOTLEY_CHECK(tensor.is_contiguous() && tensor.scalar_type() == at::kFloat,
               "floats are lent of contiguous fp32 alone");
  if (!tensor.is_cpu()) return {};
  return {tensor.data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

// The memory of a tensor of any dtype. REQUIRES: contiguous, on the host.
[[nodiscard]] inline std::span<std::byte> bytes_of(const at::Tensor& tensor) {
  MOTLEY_CHECK(tensor.is_contiguous() && tensor.is_cpu(), "bytes are lent of the host's alone");
  return {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()};
}

}  // namespace motley
