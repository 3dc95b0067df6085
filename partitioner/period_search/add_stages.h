// Extends a pipeline to a requested number of stages: for `stages = n`, if the searches, which take
// no more slots than shorten the period, stop before n.
#pragma once

#include <vector>

#include "partitioner/cost/search_space.h"
#include "partitioner/cost/step_estimate.h"

namespace motley {

// Adds stages of one layer on slots that the candidate does not use, each time the one with the
// least estimate; false if none fits any more. slots: the choices, in the order in which they are
// tried. Does not check that required slots are used; rating the result does.
[[nodiscard]] bool add_stages(const StepEstimate& estimate,
                              const std::vector<int>& slots,
                              int stages,
                              Candidate& candidate);

}  // namespace motley
