// The kernels of compression/formats/half.h with AVX2 and F16C.
#pragma once

#include "compression/formats/half.h"

namespace motley {

// nullptr if this processor or the build target lacks the instructions.
[[nodiscard]] const HalfKernels* avx2_half_kernels();

}  // namespace motley
