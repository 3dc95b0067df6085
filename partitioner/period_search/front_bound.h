// FrontBound: the least cost that prepending to a tail adds besides the layers
// (free_slots_bound.h): a hop, its load, and the all-reduce of a tied gradient. Admissible.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "partitioner/cost/step_estimate.h"
#include "partitioner/period_search/free_slots_bound.h"

namespace motley {

using SlotMask = unsigned;  // a bit for each position among the usable slots

class FrontBound {
 public:
  // All must outlive it. slots: the usable ones; members: [mask] the slots at the positions in it.
  FrontBound(const StepEstimate& estimate,
             const std::vector<int>& slots,
             const std::vector<std::vector<int>>& members);

  // Sets the tails of step_s: those with this stage in front and this last stage, and the slots
  // that are free for stages before them.
  void set_tail(SlotMask front, SlotMask last, SlotMask free);

  // A lower bound of all pipelines that end in the tail; infinite if layers are missing and no slot
  // is free for them.
  [[nodiscard]] double step_s(const Tail& tail, int first_layer);

 private:
  void find_least_transfers();
  [[nodiscard]] double tied_s(SlotMask first, SlotMask last);

  const StepEstimate& estimate_;
  const std::vector<int>& slots_;
  const std::vector<std::vector<int>>& members_;
  std::vector<StageTransfer> least_transfers_;         // [position x position]
  std::vector<std::optional<FreeSlotsBound>> bounds_;  // [mask of free slots]
  std::map<SlotMask, double> tied_;                    // by the slots at both ends

  // Set by set_tail:
  SlotMask front_ = 0;
  SlotMask last_ = 0;
  const FreeSlotsBound* bound_ = nullptr;  // nullptr: nothing can be prepended
  double least_hop_s_ = 0;
  double least_load_s_ = 0;
  double tied_s_ = 0;
};

}  // namespace motley
