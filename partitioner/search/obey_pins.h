// Changes that bring a candidate nearer to what pins ask for. A search that takes only what obeys
// them overlooks the cheapest way to obey: the best plan without the pin, and one layer of it on
// the pinned machine too, for as few micro-batches as that has to take.
#pragma once

#include <vector>

#include "partitioner/cost/search_space.h"

namespace motley {

// For the first pin that the candidate does not obey, each way to obey it: a run of layers becomes
// a stage, on a slot of the pinned machine as well for one of the micro-batches, or on that alone;
// over its boundaries goes each codec. With their shares, not rated. Pins of layers come first; a
// change for a pinned machine breaks no pin that is obeyed, so that changing on comes to an end.
// Empty when all pins are obeyed, or when nothing obeys one more. REQUIRES: the candidate has its
// shares.
[[nodiscard]] std::vector<Candidate> changes_to_obey(const Candidate& candidate,
                                                     const SearchSpace& space,
                                                     int layer_count);

}  // namespace motley
