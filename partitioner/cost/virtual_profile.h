// The profile of a virtual device: computed from a model's operations and a speed, not measured.
//
// A layer's forward and the two parts of its backward take their floating point operations
// (LayerSpec::forward_flops_per_sample and the next two) at the device's rate. The optimizer moves
// memory rather than computing; what it moves counts as operations of a device that does 32 of them
// in the time of a byte, which is about what graphics processors and processors of today are built
// for. The rate is the one that is given, or the one that makes the whole model, trained alone in
// the job's batches, reach the tokens a second that are given. Memory is that of
// models/spec/layer_memory.h.
#pragma once

#include <vector>

#include "models/spec/model_spec.h"
#include "plan/cluster.h"
#include "plan/profile.h"

namespace motley {

// The part of a training job that a device's times depend on.
struct VirtualJob {
  int global_batch = 1;           // samples of a step
  int moments_per_parameter = 0;  // floats that the optimizer keeps for each
};

// Layers and optimizer, at these micro-batch sizes (ascending); names, memory of the device, codecs
// and messages are left to the caller. REQUIRES: one of the speeds is above 0.
[[nodiscard]] DeviceProfile virtual_profile(const ModelSpec& model,
                                            const VirtualSpeed& speed,
                                            const VirtualJob& job,
                                            const std::vector<int>& sizes);

}  // namespace motley
