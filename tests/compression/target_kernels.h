// Vector kernels for every instruction set of this processor, not only for the best.
#pragma once

#include <cstdint>
#include <vector>

#include "compression/formats/block_quantise.h"
#include "compression/kernels/vector_targets.h"
// After vector_targets.h.
#include <hwy/targets.h>

namespace motley {

// Calls best() once for each instruction set, with the others hidden. The first result is the one
// without hiding.
template <class Best>
[[nodiscard]] auto kernels_of_every_target(const Best& best) {
  std::vector kernels = {best()};
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    kernels.push_back(best());
  }
  hwy::SetSupportedTargetsForTest(0);
  return kernels;
}

[[nodiscard]] inline BlockKernels best_block_kernels() {
  return {best_int8_kernels(), best_int4_kernels()};
}

}  // namespace motley
