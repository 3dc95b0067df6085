// StageRounds: a rank's pseudo-gradients, which islands all-reduce after a round
// (plan/rounds/rounds_plan.h), and the outer update. Called by the compute thread. Between offer()
// and adopt(), where steps of the next round may lie, the returned spans belong to the all-reduce
// thread.
#pragma once

#include <span>

#include "base/ids.h"

namespace motley {

class StageRounds {
 public:
  virtual ~StageRounds() = default;

  // Before the first step of a round, or of the session if that is within one: the parameters are
  // the anchor, unless they already are.
  virtual void begin_round() = 0;

  // After the update of a round's last step: writes this rank's weighted contribution to the mean
  // pseudo-gradient, and takes the parameters with which its island goes on until adopt().
  virtual void offer() = 0;

  // All-reduced in place. Of equal size on each rank with the chunk.
  virtual std::span<float> pseudo_gradients(ChunkId chunk) = 0;
  // That of the tied parameter, which is then not in pseudo_gradients(); empty unless several ranks
  // hold a use of it, and only called on such a rank.
  virtual std::span<float> tied_pseudo_gradient() = 0;

  // The spans hold the sums over all ranks: updates the anchor, and takes it as parameters, with
  // the steps since the offer on top.
  virtual void adopt() = 0;

  // At the end of a start that one island computed alone: the number of arrays of its state, of
  // which each is sent to all ranks by an all-reduce of the same spans. offer_start() writes the
  // array on that island, and 0 on all others; adopt_start() takes it over.
  [[nodiscard]] virtual int start_arrays() const = 0;
  virtual void offer_start(int array) = 0;
  virtual void adopt_start(int array) = 0;
};

}  // namespace motley
