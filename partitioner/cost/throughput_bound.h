// Pace: throughput bounds that no plan can beat, from the speeds of the slots alone.
//
// Each layer l weighs y(l), its time on the slot that is fastest for it. A slot processes weight at
// a rate of at most max over l of y(l) / time(l), its pace (at most 1). For any placement, weight /
// sum of paces therefore bounds the time; memory and links only make it longer.
#pragma once

#include <vector>

#include "partitioner/cost/search_space.h"
#include "partitioner/cost/stage_table.h"

namespace motley {

class ThroughputBound {
 public:
  ThroughputBound(const StageTable& table, const SearchSpace& space);

  // Weight of all layers before `layer`.
  [[nodiscard]] double weight_before(int layer) const {
    return weight_before_[static_cast<std::size_t>(layer)];
  }

  [[nodiscard]] double weight() const { return weight_before_.back(); }

  // 0 for slots that must not be used.
  [[nodiscard]] double of(int slot) const { return throughput_[static_cast<std::size_t>(slot)]; }

  // The period if layers were divisible: weight / sum of paces.
  [[nodiscard]] double fluid_period_s() const;

  // A lower bound of any pipeline's estimate S + (m - 1) P if no period is below period_min_s: for
  // each period the fastest slots are filled first, which minimises S; then the best period is
  // taken.
  [[nodiscard]] double step_bound_s(double period_min_s, int micro_batches) const;

 private:
  [[nodiscard]] double least_sum_s(double period_s) const;

  std::vector<double> weight_before_;  // [layer]
  std::vector<double> throughput_;     // [slot]
  std::vector<double> fastest_first_;  // paces
};

}  // namespace motley
