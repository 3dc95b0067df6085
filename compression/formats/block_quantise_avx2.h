// The kernels of compression/formats/block_quantise.h with AVX2.
#pragma once

#include "compression/formats/block_quantise.h"

namespace motley {

// nullptr if this processor or the build target lacks the instructions.
[[nodiscard]] const BlockKernels* avx2_block_kernels();

}  // namespace motley
