// FreeSlotsBound: what no pipeline can beat that ends in a given tail, from the slots that are
// still free. Admissible: it never exceeds the estimate of any of them.
//
// Layer l weighs y(l), the least share of a whole pass that it is on any of the free slots; a slot
// that takes v for a whole pass gets through at most 1 / v of weight a second. At a period P the
// layers in front of the tail then take at least the sum that fills the fastest slots first, and
// over P the bound S + (m - 1) P is least where a slot is just filled, or at the tail's own period.
#pragma once

#include <vector>

#include "partitioner/cost/step_estimate.h"

namespace motley {

class FreeSlotsBound {
 public:
  // `estimate` must outlive it. free: not empty.
  FreeSlotsBound(const StepEstimate& estimate, const std::vector<int>& free);

  // Of S + (m - 1) P where the layers before the tail's first one go to the free slots.
  // hop_s: of sum that comes on top whatever they are.
  [[nodiscard]] double step_s(const Tail& tail, int first_layer, double hop_s) const;

 private:
  int micro_batches_;
  std::vector<double> weight_before_;  // [layer]
  std::vector<double> paces_;          // fastest first
  std::vector<double> paces_before_;   // [k] of the k fastest together
};

}  // namespace motley
