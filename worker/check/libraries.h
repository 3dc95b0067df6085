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

// What decides the last bits of results on this machine's processor, besides the number of threads:
// "LibTorch 1.13.1, BLAS libopenblasp-r0.3.21.so for SkylakeX, oneDNN libdnnl.so.2.7, AVX-512", and
// the environment's limits of instruction sets. "" is left out.
[[nodiscard]] std::string processor_arithmetic();

}  // namespace motley
