// The kernels of compression/formats/block_quantise.h with AVX-512.
#pragma once

#include "compression/formats/block_quantise.h"

namespace motley {

// nullptr when this processor, or the one this was compiled for, lacks the instructions: both or
// neither.
[[nodiscard]] const FormatKernels* avx512_int8_kernels();
[[nodiscard]] const FormatKernels* avx512_int4_kernels();

}  // namespace motley
