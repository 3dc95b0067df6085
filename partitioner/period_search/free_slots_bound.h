// FreeSlotsBound: a lower bound of all pipelines that end in a given tail, from the slots that are
// still free. Admissible: it never exceeds the estimate of any of them.
//
// Layer l weighs y(l), its least share of a whole pass over the free slots; a slot that takes v for
// a whole pass processes at most 1 / v of weight a second. At a period P the layers in front of the
// tail then take at least the sum that fills the fastest slots first. Over P, the bound S + (m - 1)
// P is least where a slot is just filled, or at the tail's own period.
#pragma once

#include <vector>

#include "partitioner/cost/step_estimate.h"

namespace motley {

class FreeSlotsBound {
 public:
  // `estimate` must outlive it. free: not empty.
  FreeSlotsBound(const StepEstimate& estimate, const std::vector<int>& free);

  // The least S + (m - 1) P if the layers before the tail's first one are placed on the free slots.
  // transfer_path_s: added to the sum in any case.
  [[nodiscard]] double step_s(const Tail& tail, int first_layer, double transfer_path_s) const;

 private:
  int micro_batches_;
  std::vector<double> weight_before_;  // [layer]
  std::vector<double> throughputs_;    // fastest first
  std::vector<double> paces_before_;   // [k] total of the k fastest
};

}  // namespace motley
