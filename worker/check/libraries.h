// Which libraries this worker computes with: they decide how fast its layers are.
#pragma once

#include <string>
#include <vector>

namespace motley {

// The file of the library that multiplies matrices, and for which processors its kernels are, where
// it tells. "" = unknown.
[[nodiscard]] std::string loaded_blas();

// Everything that decides how fast layers are, each with its version: Motley and its kernels,
// LibTorch, the BLAS and oneDNN.
[[nodiscard]] std::vector<std::string> computing_libraries();

}  // namespace motley
