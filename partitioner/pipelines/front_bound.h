// FrontBound: what whatever can still be put in front of a tail adds at least, beside its layers
// (free_slots_bound.h): a hop, its load, and the sum of a tied gradient. Admissible.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "partitioner/cost/step_estimate.h"
#include "partitioner/pipelines/free_slots_bound.h"

namespace motley {

using SlotMask = unsigned;  // of positions among the usable slots

class FrontBound {
 public:
  // All must outlive it. slots: the usable ones; members: [mask] the slots of the positions in it.
  FrontBound(const StepEstimate& estimate,
             const std::vector<int>& slots,
             const std::vector<std::vector<int>>& members);

  // What step_s is about: tails with this stage in front and this one at the end, and the slots
  // that stages before them can have.
  void set_tail(SlotMask front, SlotMask last, SlotMask free);

  // No pipeline that ends in the tail takes less; infinite where layers are missing and nothing is
  // free for them.
  [[nodiscard]] double step_s(const Tail& tail, int first_layer);

 private:
  void find_least_hops();
  [[nodiscard]] double tied_s(SlotMask first, SlotMask last);

  const StepEstimate& estimate_;
  const std::vector<int>& slots_;
  const std::vector<std::vector<int>>& members_;
  std::vector<Hop> least_hops_;                        // [position x position]
  std::vector<std::optional<FreeSlotsBound>> bounds_;  // [mask of free slots]
  std::map<SlotMask, double> tied_;                    // by the slots at both ends

  // Of set_tail:
  SlotMask front_ = 0;
  SlotMask last_ = 0;
  const FreeSlotsBound* bound_ = nullptr;  // nullptr: nothing can come in front
  double least_hop_s_ = 0;
  double least_load_s_ = 0;
  double tied_s_ = 0;
};

}  // namespace motley
