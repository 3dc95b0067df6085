// Which micro-batch sizes a device with little memory is measured with.
#pragma once

#include <cstdint>
#include <vector>

#include "partitioner/profile.h"

namespace motley {

// Whether a layer that was measured with these sizes, ascending, may be measured with a larger one:
// when its tensors will take no more than half of what was free at the start. The other half is for
// what goes with measuring (the layer's parameters, memory that fills the caches) and for what the
// allocator keeps between sizes. Without any size yet, always: a layer needs one.
// A size that is left out is taken from the line through those measured (interpolate()).
[[nodiscard]] bool has_room(const std::vector<LayerSample>& measured,
                            int samples,
                            std::int64_t free_bytes);

}  // namespace motley
