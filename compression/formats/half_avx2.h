// The kernels of compression/formats/half.h with AVX2 and F16C.
#pragma once

#include "compression/formats/half.h"

namespace motley {

// nullptr when this processor, or the one this was compiled for, lacks the instructions.
[[nodiscard]] const HalfKernels* avx2_half_kernels();

}  // namespace motley
