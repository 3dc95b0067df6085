// The exact search for few slots: every order of every subset, alone or grouped into replicas,
// every cut, every codec of every boundary.
//
// For each order of stages the minimum over all cuts under all memory limits comes from a dynamic
// programme from the last stage backwards: it keeps, for each first layer and codec of the boundary
// before it, every tail that no other beats in sum, period and load. All three only grow when a
// stage is put in front, so nothing better is lost. Tails whose lower bound exceeds the worst kept
// candidate are dropped.
#pragma once

#include <cstddef>
#include <vector>

#include "partitioner/cost/search_space.h"
#include "partitioner/cost/stage_table.h"

namespace motley {

// Above this many usable slots (or classes, with equal ones) use period_search.h.
inline constexpr std::size_t kExactSlotsMax = 6;

// The `keep` best candidates by estimate, best first; fewer when fewer exist. Deterministic.
// REQUIRES: at most kExactSlotsMax usable slots.
[[nodiscard]] std::vector<Candidate> search_exactly(const StageTable& table,
                                                    const SearchSpace& space,
                                                    std::size_t keep);

}  // namespace motley
