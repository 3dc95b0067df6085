// SteppedState: what a step changes. The worker's is StageState; a virtual device has none and only
// waits (rehearsal/virtual_compute.h).
#pragma once

#include <cstdint>
#include <vector>

#include "training/optimizer/optimizer.h"
#include "training/vote/vote.h"

namespace motley {

class SteppedState {
 public:
  virtual ~SteppedState() = default;

  // Squared norms by layer, of the gradients that this rank is the one to vote for.
  [[nodiscard]] virtual std::vector<LayerNorm2> layer_norms() = 0;
  // Of this rank's copy of the group's parameters: equal copies, equal hash.
  [[nodiscard]] virtual std::uint64_t copy_hash(const CopyGroup& group) = 0;

  // Updates every parameter.
  virtual void update(const StepFactors& factors, float gradient_scale) = 0;
  virtual void clear_gradients() = 0;
};

}  // namespace motley
