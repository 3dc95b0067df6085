// Conclusions from what a machine reports about its CUDA cards. Pure functions, so that a machine
// without a card tests them all.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/device/kinds/device_problem.h"

namespace motley {

struct ComputeCapability {
  int major = 0;
  int minor = 0;

  friend auto operator<=>(const ComputeCapability&, const ComputeCapability&) = default;
};

// "8.6".
[[nodiscard]] std::string to_text(const ComputeCapability& capability);

// The kernels that a library contains.
struct CudaKernels {
  std::vector<ComputeCapability> compiled;     // run on later cards of the same major version
  std::vector<ComputeCapability> translated;   // a driver compiles kernels for later cards
  std::vector<ComputeCapability> exactly_for;  // run on these cards alone
};

struct CudaFacts {
  std::string library_problem;  // why LibTorch's CUDA library is not open; "" = it is
  int runtime = 0;              // that it was built for, 12040 for CUDA 12.4; 0 = unknown
  int driver = 0;               // the latest CUDA that the driver supports; 0 = no driver
  int visible_gpus = 0;         // that the system lists, with or without a driver
  bool are_hidden = false;      // CUDA_VISIBLE_DEVICES restricts them
  bool has_amd_gpu = false;     // with the driver of AMD's ROCm
};

// Why LibTorch finds no card.
[[nodiscard]] DeviceProblem no_card_problem(const CudaFacts& facts);

// The kernels according to the build flags that LibTorch reports, such as
// "-gencode;arch=compute_90,code=sm_90;…"; empty if none are known.
[[nodiscard]] CudaKernels cuda_kernels(std::string_view flags);

// Why LibTorch's kernels would not run on a card of that capability; nullopt if they would, or if
// that is unknown.
[[nodiscard]] std::optional<DeviceProblem> card_problem(const ComputeCapability& capability,
                                                        const CudaKernels& kernels);

// "12.4" of 12040.
[[nodiscard]] std::string cuda_version_text(int version);

}  // namespace motley
