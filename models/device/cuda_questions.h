// What CUDA's own libraries are asked, by the names that their functions have kept since CUDA 4.
//
// cudaGetDeviceProperties is not among them: its structure changes between versions.
#pragma once

#include <optional>
#include <string>

#include <c10/core/ScalarType.h>

#include "models/device/device_kinds.h"

namespace motley {

// LibTorch's library for CUDA. Says why it could not be opened.
[[nodiscard]] std::optional<std::string> open_cuda_library();

// The rest answers nothing where CUDA's runtime is not open or does not answer.

// Of the current card.
[[nodiscard]] std::optional<DeviceRoom> cuda_memory();

struct ComputeCapability {
  int major = 0;
  int minor = 0;

  friend auto operator<=>(const ComputeCapability&, const ComputeCapability&) = default;
};

[[nodiscard]] std::optional<ComputeCapability> cuda_capability(int index);

// Whether the card's tensor cores take the type.
[[nodiscard]] bool cuda_computes_products_in(int index, at::ScalarType type);
// The same of any card of that capability.
[[nodiscard]] bool computes_products_in(const ComputeCapability& capability, at::ScalarType type);

}  // namespace motley
