// The memory of a tensor as the rest of the program has it.
#pragma once

#include <cstddef>
#include <span>

#include <ATen/core/Tensor.h>

#include "base/check.h"

namespace motley {

// Its own memory; empty where it lies on a device. REQUIRES: contiguous fp32.
[[nodiscard]] inline std::span<float> floats_of(const at::Tensor& tensor) {
  MOTLEY_CHECK(tensor.is_contiguous() && tensor.scalar_type() == at::kFloat,
               "floats are lent of contiguous fp32 alone");
  if (!tensor.is_cpu()) return {};
  return {tensor.data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

// Any tensor's memory on the host. REQUIRES: contiguous, of the host.
[[nodiscard]] inline std::span<std::byte> bytes_of(const at::Tensor& tensor) {
  MOTLEY_CHECK(tensor.is_contiguous() && tensor.is_cpu(), "bytes are lent of the host's alone");
  return {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()};
}

}  // namespace motley
