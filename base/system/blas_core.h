// The kernels that OpenBLAS chose for this processor, and the ones that it should have chosen.
//
// OpenBLAS recognises processors by their model numbers. For a processor newer than the library it
// falls back to the kernels of "Prescott" (2004), with which layers take three times as long
// (decision 0021). An environment variable can select better kernels, but it is read while the
// library is loaded, so the program must be executed again.
#pragma once

#include <string>
#include <string_view>

namespace motley {

// The features of a processor that determine the choice.
struct VectorUnits {
  bool avx2 = false;    // with fused multiply-add
  bool avx512 = false;  // all AVX-512 extensions of Skylake's server processors
  bool bf16 = false;    // AVX-512 with bfloat16 products
};

// Those of this processor; none on other architectures.
[[nodiscard]] VectorUnits vector_units();

// The kernels in use in this process; empty if OpenBLAS is not loaded.
[[nodiscard]] std::string blas_core();

// The value that OPENBLAS_CORETYPE should have; empty if the kernels in use are right.
[[nodiscard]] std::string better_blas_core(std::string_view taken, const VectorUnits& units);

// Executes this program again, in this process and with the same arguments and open files, if
// OpenBLAS chose the wrong kernels and OPENBLAS_CORETYPE is not set. Must be called first in main.
// Returns if nothing has to change or the restart fails.
void restart_for_better_blas(char** argv);

}  // namespace motley
