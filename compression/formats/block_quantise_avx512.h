// The kernels of compression/formats/block_quantise.h with AVX-512.
#pragma once

#include "compression/formats/block_quantise.h"

namespace motley {

// Both are nullptr if this processor or the build target lacks the instructions.
[[nodiscard]] const FormatKernels* avx512_int8_kernels();
[[nodiscard]] const FormatKernels* avx512_int4_kernels();

}  // namespace motley
