// Selection of the micro-batch sizes to measure on a device with little memory.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/profile.h"

namespace motley {

// Whether a layer that was measured with these sizes, ascending, may be measured with a larger one:
// its tensors must take at most half of the free memory, without the memory for the cache eviction.
// The other half is for the rest of the measurement: the layer's input and output, buffers of
// libraries, fragmentation in the allocator. Always true without a measured size: a layer needs
// one. The planner extrapolates to a size that was left out (interpolate()).
[[nodiscard]] bool fits_memory(const std::vector<LayerSample>& measured,
                               int samples,
                               std::int64_t free_bytes);

}  // namespace motley
