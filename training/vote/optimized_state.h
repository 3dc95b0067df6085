// OptimizedState: what a step changes. The worker's is StageState; a virtual device has none and
// only waits (rehearsal/virtual_compute.h).
#pragma once

#include <cstdint>
#include <vector>

#include "training/optimizer/optimizer.h"
#include "training/vote/vote.h"

namespace motley {

// What gradients are multiplied by in a step: both times by 1/tokens.
struct GradientScales {
  float clipped = 1;  // and by the clip factor
  float pushed = 1;   // of pushes, whose gradients were clipped before they were summed
};

class OptimizedState {
 public:
  virtual ~OptimizedState() = default;

  // Squared norms by layer, of the gradients that this rank is the one to vote for.
  [[nodiscard]] virtual std::vector<LayerNorm2> layer_norms() = 0;
  // Of this rank's copy of the group's parameters: equal copies, equal hash.
  [[nodiscard]] virtual std::uint64_t copy_hash(const CopyGroup& group) = 0;

  // Updates every parameter.
  virtual void update(const StepFactors& factors, const GradientScales& scales) = 0;
  virtual void clear_gradients() = 0;
};

}  // namespace motley
