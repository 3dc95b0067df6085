// StageReach: at a given period, the first layer from which on a slot can hold all layers up to a
// given one.
//
// Stages are single slots here. The costs of their boundaries are those of the cheapest codec and
// the smallest boundary, so a reach is never underestimated and bounds derived from it hold. For
// transformers, which have equal boundaries, and one codec it is exact.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "partitioner/cost/search_space.h"
#include "partitioner/cost/stage_table.h"
#include "partitioner/cost/step_estimate.h"
#include "partitioner/cost/throughput_bound.h"

namespace motley {

class StageReach {
 public:
  // All must outlive it. classes: the result of slot_classes.
  StageReach(const StepEstimate& estimate,
             const ThroughputBound& pace,
             const std::vector<std::vector<int>>& classes);

  [[nodiscard]] int class_count() const { return static_cast<int>(classes_.size()); }

  [[nodiscard]] const std::vector<int>& members(int slot_class) const {
    return classes_[static_cast<std::size_t>(slot_class)];
  }

  // The period of the queries below.
  void set_period(double period_s);

  // The smallest `first` such that the class can hold [first, last) within the period and its
  // memory as the depth-th stage from the end; `last` if it cannot hold even layer last - 1.
  [[nodiscard]] int first(int slot_class, int depth, int last) const;

  // Whether a transfer over any boundary between the two classes takes at most the period.
  [[nodiscard]] bool carries(int front_class, int behind_class) const {
    return load_s_[static_cast<std::size_t>(front_class) * classes_.size() +
                   static_cast<std::size_t>(behind_class)] <= period_s_;
  }

  // The shortest period for these stages, by slots and first layers, under the assumptions of the
  // queries above.
  [[nodiscard]] double least_period_s(const std::vector<int>& slots,
                                      const std::vector<int>& first_layers) const;

  // The most weight (throughput_bound.h) of consecutive layers that a slot of the class can hold
  // within the period.
  [[nodiscard]] double capacity(int slot_class) const {
    return capacity_[static_cast<std::size_t>(slot_class)];
  }

  // The capacity of all slots less the model's weight; below 0 the period is impossible.
  [[nodiscard]] double slack() const { return slack_; }

 private:
  // Per micro-batch.
  [[nodiscard]] double busy_s(int slot_class, int first, int last, bool recompute) const;
  [[nodiscard]] int class_of(int slot) const;
  [[nodiscard]] bool fits(int slot, int first, int last, int depth, bool recompute) const;

  // What memory and pins allow for any period: the first layer from which on [first, last) fits,
  // and whether [0, last) does, which has one boundary less.
  struct Fitting {
    std::int32_t inner_first = kNotAsked;  // last = none
    bool from_start = false;
  };

  static constexpr std::int32_t kNotAsked = -1;

  // Cached, since it is queried for every period.
  [[nodiscard]] const Fitting& fitting(int slot_class, int depth, int last, bool recompute) const;

  // What fits the period with unlimited memory.
  struct InTime {
    // The smallest first layer above 0: a stage that is not the first has one more boundary.
    std::vector<int> inner_first;  // [last]; last = none
    std::vector<bool> from_start;  // [last] whether [0, last) fits
  };

  [[nodiscard]] InTime in_time(int slot_class, bool recompute) const;
  [[nodiscard]] int first(
      const InTime& in_time, int slot_class, int depth, int last, bool recompute) const;

  [[nodiscard]] int slot_of(int slot_class) const { return members(slot_class).front(); }

  const StepEstimate& estimate_;
  const ThroughputBound& throughput_;
  const std::vector<std::vector<int>>& classes_;
  std::vector<double> before_s_;     // [class] least compute time for a boundary after its layers
  std::vector<double> behind_s_;     // [class] the same for one before its layers
  std::vector<double> load_s_;       // [front class * classes + behind class] least link time
  std::int64_t boundary_bytes_ = 0;  // of the smallest boundary, in memory
  mutable std::vector<Fitting> fittings_;  // [class x depth x last x recompute]
  double period_s_ = 0;
  std::vector<InTime> once_;      // [class] forward once
  std::vector<InTime> twice_;     // [class] forward twice
  std::vector<double> capacity_;  // [class]
  double slack_ = 0;
};

}  // namespace motley
