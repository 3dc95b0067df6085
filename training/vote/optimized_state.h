// OptimizedState: the interface through which a vote reads gradients and parameters, and a step
// updates them. Implemented by StageState for a worker, and by VirtualCompute
// (simulated/virtual_compute.h) for a virtual device, which has no values and only waits.
#pragma once

#include <cstdint>
#include <vector>

#include "training/optimizer/optimizer.h"
#include "training/vote/vote.h"

namespace motley {

// Factors by which a step multiplies gradients; both contain 1/tokens.
struct GradientScales {
  float clipped = 1;    // contains the clip factor too
  float corrected = 1;  // of momentum-corrected gradients, clipped before the all-reduce
};

class OptimizedState {
 public:
  virtual ~OptimizedState() = default;

  // Squared gradient norms of the layers for which this rank votes.
  [[nodiscard]] virtual std::vector<LayerNorm2> layer_norms() = 0;
  // Hash of this rank's copy of the group's parameters; equal copies have equal hashes.
  [[nodiscard]] virtual std::uint64_t copy_hash(const CopyGroup& group) = 0;

  // Updates every parameter.
  virtual void update(const StepFactors& factors, const GradientScales& scales) = 0;
  virtual void clear_gradients() = 0;
};

}  // namespace motley
