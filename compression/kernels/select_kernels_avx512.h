// The kernels of compression/kernels/select_kernels.h with AVX-512.
#pragma once

#include "compression/kernels/select_kernels.h"

namespace motley {

// nullptr when this processor, or the one this was compiled for, lacks the instructions.
[[nodiscard]] const SelectKernels* avx512_select_kernels();

}  // namespace motley
