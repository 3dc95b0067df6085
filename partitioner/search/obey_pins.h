// Changes that bring a candidate nearer to satisfying the pins. A search restricted to satisfying
// candidates misses the cheapest solution: the best plan without the pin, with one of its layers
// also on the pinned machine, for as few micro-batches as possible.
#pragma once

#include <vector>

#include "partitioner/cost/search_space.h"

namespace motley {

// For the first pin that the candidate violates, each way to satisfy it. A run of layers becomes a
// stage, either also on a slot of the pinned machine for one of the micro-batches, or on that
// alone, with each codec at its boundaries. Shares are set; not rated. Pins of layers come first. A
// change for a required machine violates no satisfied pin, so that repeated changes terminate.
// Empty if all pins are satisfied, or if no change satisfies one more. REQUIRES: the candidate's
// shares are set.
[[nodiscard]] std::vector<Candidate> changes_to_obey(const Candidate& candidate,
                                                     const SearchSpace& space,
                                                     int layer_count);

}  // namespace motley
