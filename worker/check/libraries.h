// The libraries that this worker computes with: they determine the speed of its layers.
#pragma once

#include <string>
#include <vector>

namespace motley {

// The file of the BLAS library and, if it reports it, the processor type that its kernels are for.
// "" = unknown.
[[nodiscard]] std::string loaded_blas();

// All libraries that determine the speed of layers, each with its version: Motley and its kernels,
// LibTorch, the BLAS and oneDNN.
[[nodiscard]] std::vector<std::string> computing_libraries();

}  // namespace motley
