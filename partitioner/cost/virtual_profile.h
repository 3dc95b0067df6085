// The profile of a virtual device: computed from a model's operations and a speed, not measured.
//
// A layer's forward and the two parts of its backward take their floating point operations
// (LayerSpec::forward_flops_per_sample and the next two) at the device's rate. The optimizer is
// bound by memory; its traffic counts as operations of a device that does 32 of them in the time of
// a byte, about the balance of today's GPUs and processors. The rate is given directly, or follows
// from the given tokens a second of the whole model, trained alone with the job's batches. Memory
// is that of models/spec/layer_memory.h, and a rounded copy of the parameters unless products are
// fp32 (packages have none).
#pragma once

#include <vector>

#include "models/spec/model_spec.h"
#include "plan/cluster.h"
#include "plan/profile.h"

namespace motley {

// The part of a training job that affects a device's times.
struct VirtualJob {
  int global_batch = 1;                   // samples of a step
  int moments_per_parameter = 0;          // the optimizer's floats for each parameter
  double matrix_flops_per_parameter = 0;  // its matrix products
  // Of values in the dtype of products; 4 = fp32.
  int product_bytes = 4;
  bool rounds_intermediates = false;  // values between two products of a layer too
};

// Layers and optimizer, at these micro-batch sizes (ascending). The caller sets names, the device's
// memory, codecs and messages. REQUIRES: one of the speeds is above 0.
[[nodiscard]] DeviceProfile virtual_profile(const ModelSpec& model,
                                            const VirtualSpeed& speed,
                                            const VirtualJob& job,
                                            const std::vector<int>& sizes);

}  // namespace motley
