// The kernels of compression/kernels/select_kernels.h with AVX2.
#pragma once

#include "compression/kernels/select_kernels.h"

namespace motley {

// nullptr if this processor or the build target lacks the instructions.
[[nodiscard]] const SelectKernels* avx2_select_kernels();

}  // namespace motley
