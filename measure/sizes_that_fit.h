// Which micro-batch sizes a device with little memory is measured with.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/profile.h"

namespace motley {

// Whether a layer that was measured with these sizes, ascending, may be measured with a larger one:
// when its tensors will take no more than half of what is free beside the memory that fills the
// caches. The other half is for what goes with measuring: the layer's input and what it hands on,
// what libraries keep, what the allocator cannot use again. Without any size yet, always: a layer
// needs one. The planner continues the line through the sizes that were measured (interpolate()) to
// one that was left out.
[[nodiscard]] bool has_room(const std::vector<LayerSample>& measured,
                            int samples,
                            std::int64_t free_bytes);

}  // namespace motley
