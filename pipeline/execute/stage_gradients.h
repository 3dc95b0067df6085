// StageGradients: the memory in which a rank's backwards accumulate gradients and which all-reduces
// change in place. Called by the compute thread; the all-reduce thread also uses the returned
// spans.
#pragma once

#include <span>

#include "base/ids.h"

namespace motley {

class StageGradients {
 public:
  virtual ~StageGradients() = default;

  // The chunk's gradients, without those of a tied parameter that other ranks use too. All-reduced
  // in place over the chunk's replicas from its last backward on. Of equal size on each replica,
  // and at one address from the start of the batch to the step.
  virtual std::span<float> gradients(ChunkId chunk) = 0;

  // The gradient of the tied parameter, of its uses on this rank; all-reduced in place over the
  // ranks that hold a use, and not in gradients(). Only called on such a rank, if there are
  // several.
  virtual std::span<float> tied_gradient() = 0;

  // Called on the ranks of chunk 0 and the last chunk, before tied_gradient() is all-reduced: after
  // the step's last backward or input part of chunk 0 and the last backward or weight part of the
  // last chunk.
  virtual void end_tied_gradient() = 0;
};

}  // namespace motley
