// StageWorks: what one group of slots does as a stage, for every range of layers, at one depth.
// Worked out when first asked for: the exact search asks for the same ones again and again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "partitioner/cost/step_estimate.h"

namespace motley {

class StageWorks {
 public:
  // `estimate` must outlive it. depth: of the stage, counted from the end of the model.
  StageWorks(const StepEstimate& estimate, std::vector<int> slots, int depth);

  // nullptr where the layers [first, last) do not fit or a pin forbids it. What it points to stays.
  [[nodiscard]] const StageWork* of(int first, int last);

 private:
  const StepEstimate& estimate_;
  std::vector<int> slots_;
  int depth_;
  std::size_t layers_;
  std::vector<std::int32_t> known_;  // [first x last] of works_, or why there is none
  std::deque<StageWork> works_;
};

}  // namespace motley
