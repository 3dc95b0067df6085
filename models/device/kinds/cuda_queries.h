// Queries of CUDA's own libraries, by function names that have been stable since CUDA 4.
//
// cudaGetDeviceProperties is not used: its structure changes between versions.
#pragma once

#include <optional>
#include <string>

#include <c10/core/ScalarType.h>

#include "models/device/kinds/cuda_facts.h"
#include "models/device/kinds/device_memory_info.h"

namespace motley {

// Opens LibTorch's library for CUDA. Returns why it could not be opened.
[[nodiscard]] std::optional<std::string> open_cuda_library();

// What the machine reports about its cards. `library_problem`: why the library is not open.
[[nodiscard]] CudaFacts query_cuda(const std::string& library_problem);

// The functions below return nullopt, or "", if CUDA's libraries are not open or do not respond.

// The memory of the current card.
[[nodiscard]] std::optional<DeviceMemoryInfo> cuda_memory_info();

[[nodiscard]] std::optional<ComputeCapability> cuda_capability(int index);
[[nodiscard]] std::string cuda_capability_text(int index);
// "NVIDIA GeForce RTX 3060".
[[nodiscard]] std::string cuda_card_name(int index);
// "for CUDA 12.4".
[[nodiscard]] std::string cuda_driver_text();
// The same for LibTorch's build.
[[nodiscard]] std::string cuda_build_text();

[[nodiscard]] DeviceProblem cuda_unavailable(const std::string& library_problem);
[[nodiscard]] std::optional<DeviceProblem> cuda_problem(int index);

// Whether the card's tensor cores support the type.
[[nodiscard]] bool cuda_computes_products_in(int index, at::ScalarType type);
// The same for any card of that capability.
[[nodiscard]] bool computes_products_in(const ComputeCapability& capability, at::ScalarType type);

}  // namespace motley
