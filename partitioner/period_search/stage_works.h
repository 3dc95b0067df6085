// StageWorks: the work of one group of slots as a stage, for every range of layers. Computed on
// first use and cached: the exact search queries the same ranges repeatedly.
//
// The number of micro-batches in flight affects only whether the stage fits, and whether it
// recomputes forward. A range is therefore computed once; only if memory is the limit is it queried
// again for another number.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <vector>

#include "partitioner/cost/step_estimate.h"

namespace motley {

class StageWorks {
 public:
  // `estimate` must outlive it.
  StageWorks(const StepEstimate& estimate, std::vector<int> slots);

  // nullptr if the layers [first, last) do not fit with that many micro-batches in flight in the
  // stage, or a pin forbids it. The result stays valid as long as this object.
  [[nodiscard]] const StageWork* of(int first, int last, int in_flight);

 private:
  struct Work {
    StageFit fit;
    StageWork work;
    int fits = 0;                                 // largest known number in flight that fits
    int fails = std::numeric_limits<int>::max();  // smallest known number that does not
  };

  static constexpr std::int32_t kNotAsked = -1;
  static constexpr std::int32_t kImpossible = -2;

  // Indices in works_, with forward once and twice.
  struct Range {
    std::array<std::int32_t, 2> works = {kNotAsked, kNotAsked};
  };

  [[nodiscard]] Work* split_fit(Range& range, int first, int last, bool recompute);
  [[nodiscard]] bool fits(Work& work, int in_flight) const;

  const StepEstimate& estimate_;
  std::vector<int> slots_;
  std::size_t layers_;
  std::vector<Range> ranges_;  // [first x last]
  std::deque<Work> works_;
};

}  // namespace motley
