// Tied ends (V-shaped placement): the first and the last layer of a pipeline on one device, which
// then has two chunks.
#pragma once

#include <vector>

#include "partitioner/cost/search_space.h"

namespace motley {

// The candidate with a further stage, once for the last layer on the slot of the first stage and
// once for the first layer on the slot of the last one. A stage of that layer alone takes over its
// neighbour's nearest layer instead. Not rated. Omits impossible ones: with a single stage, on a
// stage of several slots, or without a layer to take over.
[[nodiscard]] std::vector<Candidate> tied_end_candidates(const Candidate& candidate,
                                                         int layer_count);

}  // namespace motley
