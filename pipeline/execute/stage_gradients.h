// StageGradients: where the gradients lie that the backwards of a rank add up and that sums over
// ranks change in place. Used by the compute thread; what it lends also by the thread of the sums.
#pragma once

#include <span>

#include "base/ids.h"

namespace motley {

class StageGradients {
 public:
  virtual ~StageGradients() = default;

  // Of the chunk, but for those of a tied parameter that other ranks use too. Summed in place over
  // the chunk's replicas from its last backward on, as many on each, and in one place from the
  // batch's beginning to the step.
  virtual std::span<float> gradients(ChunkId chunk) = 0;

  // Of the tied parameter, of the uses that are here; summed in place over the ranks that hold a
  // use, and not in gradients(). Only called on such a rank, where others have one too.
  virtual std::span<float> tied_gradient() = 0;

  // Called where chunk 0 or the last chunk is, before tied_gradient() is summed: after the step's
  // last backward or input part of chunk 0 and the last backward or weight part of the last chunk.
  virtual void end_tied_gradient() = 0;
};

}  // namespace motley
