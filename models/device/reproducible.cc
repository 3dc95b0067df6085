#include "models/device/reproducible.h"

#include <cstdlib>

#include <ATen/Context.h>

namespace motley {
namespace {

// Not every version of LibTorch has every setting.
template <class Context>
void settle(Context& context) {
  // Not warn_only: with it, fused attention uses an order of summation that changes between runs.
  context.setDeterministicAlgorithms(true, /*warn_only=*/false);
  context.setDeterministicCuDNN(true);
  context.setBenchmarkCuDNN(false);  // it would choose by timing
  context.setAllowTF32CuBLAS(false);
  context.setAllowTF32CuDNN(false);
  context.setAllowFP16ReductionCuBLAS(false);
  if constexpr (requires { context.setAllowBF16ReductionCuBLAS(false); }) {
    context.setAllowBF16ReductionCuBLAS(false);
  }
  // Uninitialized memory is always written before it is read here; filling it costs time.
  if constexpr (requires { context.setDeterministicFillUninitializedMemory(false); }) {
    context.setDeterministicFillUninitializedMemory(false);
  }
}

}  // namespace

void compute_reproducibly() {
  // Otherwise cuBLAS may add in another order if several streams compute. LibTorch rejects other
  // values than the two that fix the order, so a user's own value is left unchanged.
  ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
  settle(at::globalContext());
}

}  // namespace motley
