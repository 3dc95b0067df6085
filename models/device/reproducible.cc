#include "models/device/reproducible.h"

#include <cstdlib>

#include <ATen/Context.h>

namespace motley {
namespace {

// Not every version of LibTorch has every setting.
template <class Context>
void settle(Context& context) {
  // Not as a warning: the fused operations of attention take an order that changes from run to run
  // where they are only to warn of it.
  context.setDeterministicAlgorithms(true, /*warn_only=*/false);
  context.setDeterministicCuDNN(true);
  context.setBenchmarkCuDNN(false);  // which would choose by the clock
  context.setAllowTF32CuBLAS(false);
  context.setAllowTF32CuDNN(false);
  context.setAllowFP16ReductionCuBLAS(false);
  if constexpr (requires { context.setAllowBF16ReductionCuBLAS(false); }) {
    context.setAllowBF16ReductionCuBLAS(false);
  }
  // New memory is written before it is read here; to fill it first takes time.
  if constexpr (requires { context.setDeterministicFillUninitializedMemory(false); }) {
    context.setDeterministicFillUninitializedMemory(false);
  }
}

}  // namespace

void compute_reproducibly() {
  // Without it cuBLAS may add in another order where several streams compute. LibTorch refuses to
  // go on with a value that is none of the two which fix the order, so that a person's own stays.
  ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
  settle(at::globalContext());
}

}  // namespace motley
