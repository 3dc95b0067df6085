// StageWorks: what one group of slots does as a stage, for every range of layers. Worked out when
// first asked for: the exact search asks for the same ones again and again.
//
// How many micro-batches are in flight decides only whether the stage fits, and whether it then
// computes forward twice; so a range is worked out once, and only where memory binds is it asked
// again for another number of them.
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

  // nullptr where the layers [first, last) do not fit with so many micro-batches in flight in the
  // stage, or a pin forbids it. What it points to stays.
  [[nodiscard]] const StageWork* of(int first, int last, int in_flight);

 private:
  struct Work {
    StageFit fit;
    StageWork work;
    int fits = 0;                                 // with so many in flight
    int fails = std::numeric_limits<int>::max();  // with so many
  };

  static constexpr std::int32_t kNotAsked = -1;
  static constexpr std::int32_t kImpossible = -2;

  // Of works_, with forward once and twice.
  struct Range {
    std::array<std::int32_t, 2> works = {kNotAsked, kNotAsked};
  };

  [[nodiscard]] Work* dealt(Range& range, int first, int last, bool recompute);
  [[nodiscard]] bool fits(Work& work, int in_flight) const;

  const StepEstimate& estimate_;
  std::vector<int> slots_;
  std::size_t layers_;
  std::vector<Range> ranges_;  // [first x last]
  std::deque<Work> works_;
};

}  // namespace motley
