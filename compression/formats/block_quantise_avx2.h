// The kernels of compression/formats/block_quantise.h with AVX2.
#pragma once

#include "compression/formats/block_quantise.h"

namespace motley {

// nullptr when this processor, or the one this was compiled for, lacks the instructions.
[[nodiscard]] const BlockKernels* avx2_block_kernels();

}  // namespace motley
