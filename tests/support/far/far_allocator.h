// The far device's memory through LibTorch's allocator interface: of the current device, for its
// current stream.
#pragma once

#include <c10/core/Allocator.h>

namespace motley::far {

[[nodiscard]] c10::Allocator* far_allocator();

// Sets whether allocations and releases are reported to LibTorch's profiler from now on.
void report_memory(bool reports);

}  // namespace motley::far
