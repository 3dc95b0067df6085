// What a machine says of its cards for CUDA, and what it means: pure functions from the one to the
// other, so that a machine without a card tests them all.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/device/kinds/device_trouble.h"

namespace motley {

struct ComputeCapability {
  int major = 0;
  int minor = 0;

  friend auto operator<=>(const ComputeCapability&, const ComputeCapability&) = default;
};

// "8.6".
[[nodiscard]] std::string to_text(const ComputeCapability& capability);

// What a library holds kernels for.
struct CudaKernels {
  std::vector<ComputeCapability> compiled;     // run on later cards of the same major version
  std::vector<ComputeCapability> translated;   // a driver makes kernels for any later card of them
  std::vector<ComputeCapability> exactly_for;  // run on these cards alone
};

struct CudaFacts {
  std::string library_trouble;  // why LibTorch's library for CUDA is not open; "" = it is
  int runtime = 0;              // that it is built for, 12040 for CUDA 12.4; 0 = unknown
  int driver = 0;               // the latest CUDA that the driver serves; 0 = there is no driver
  int visible_gpus = 0;         // by the system, whether anything drives them or not
  bool are_hidden = false;      // CUDA_VISIBLE_DEVICES says which of them count
};

// Why LibTorch finds no card.
[[nodiscard]] DeviceTrouble why_no_card(const CudaFacts& facts);

// What of a text like "-gencode;arch=compute_90,code=sm_90;…", which LibTorch tells of its build,
// is known; empty where nothing is.
[[nodiscard]] CudaKernels cuda_kernels(std::string_view flags);

// Why nothing that LibTorch computes would run on a card of that capability; nothing where it
// would, or where nobody knows.
[[nodiscard]] std::optional<DeviceTrouble> trouble_with_card(const ComputeCapability& capability,
                                                             const CudaKernels& kernels);

// "12.4" of 12040.
[[nodiscard]] std::string cuda_version_text(int version);

}  // namespace motley
