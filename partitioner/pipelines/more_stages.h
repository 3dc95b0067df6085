// A pipeline with as many stages as are asked for, out of one with fewer: for `stages = n` where
// the searches, which take no more slots than shorten the period, stop before n.
#pragma once

#include <vector>

#include "partitioner/cost/search_space.h"
#include "partitioner/cost/step_estimate.h"

namespace motley {

// Adds stages of one layer on slots that the candidate does not use, each time the one with the
// least estimate; false where none fits any more. slots: to choose from, in the order in which they
// are tried. That some slots must be used is left to whoever rates the result.
[[nodiscard]] bool add_stages(const StepEstimate& estimate,
                              const std::vector<int>& slots,
                              int stages,
                              Candidate& candidate);

}  // namespace motley
