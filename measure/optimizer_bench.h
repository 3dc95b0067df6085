// What a step does for each parameter besides layers: its gradient's norm, the update, and zeroing
// the gradient.
#pragma once

#include <cstdint>

#include "job/config.h"
#include "models/device/compute_device.h"

namespace motley {

// Seconds of a Stopwatch a parameter, by the stage's own code on `parameters` parameters (fewer,
// where more would not fit any cache either), with the processor's caches full of other memory as
// after a backward.
[[nodiscard]] double measure_optimizer(const TrainConfig& train,
                                       std::int64_t parameters,
                                       const ComputeDevice& device = {});

}  // namespace motley
