// The far device's memory as LibTorch asks for it: of the current device, for its current stream.
#pragma once

#include <c10/core/Allocator.h>

namespace motley::far {

[[nodiscard]] c10::Allocator* far_allocator();

// Whether LibTorch's profiler is told from now on what is given and taken back.
void report_memory(bool reports);

}  // namespace motley::far
