// Which kernels OpenBLAS took for this processor, and which it should have taken.
//
// OpenBLAS knows processors by their model numbers. One that is newer than the library gets the
// kernels of "Prescott", of 2004, with which layers take three times as long (decision 0021). The
// environment can name better ones, but is read while the library is loaded, so that only a program
// that is started anew has them.
#pragma once

#include <string>
#include <string_view>

namespace motley {

// What of a processor decides.
struct VectorUnits {
  bool avx2 = false;    // with fused multiply-add
  bool avx512 = false;  // all that Skylake's server processors have
  bool bf16 = false;    // AVX-512 with products of bfloat16
};

// Of this process; empty when OpenBLAS is not loaded.
[[nodiscard]] std::string blas_core();

// What OPENBLAS_CORETYPE should be; empty = nothing, what was taken is right.
[[nodiscard]] std::string better_blas_core(std::string_view taken, const VectorUnits& units);

// Starts this program anew, in this process and with the same arguments and open files, when
// OpenBLAS took the wrong kernels and OPENBLAS_CORETYPE does not say that somebody wants them. To
// be called before all else; returns when there is nothing to mend, or when that is impossible.
void restart_for_better_blas(char** argv);

}  // namespace motley
