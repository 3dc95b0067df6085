// The exact search for few slots: every order of every subset, as single slots or grouped into
// replicas, every cut, and every codec of every boundary.
//
// A dynamic programme runs from the last stage backwards. Its state is the set of slots in use, the
// stage in front, the number of micro-batches under way, the last stage, the first layer and the
// codec of the boundary before it. For each state it stores every tail that no other dominates in
// sum, period and load. The three only grow when a stage is prepended, and no other property of a
// tail matters there, so no better candidate is lost. Tails with a lower bound (free_slots_bound.h)
// above the limit are pruned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "partitioner/cost/search_space.h"
#include "partitioner/cost/stage_table.h"

namespace motley {

// Above these numbers of usable slots or layers, use period_search.h: the work grows with the
// orders of the slots and with the square of the layers.
inline constexpr std::size_t kExactSlotsMax = 6;
inline constexpr int kExactLayersMax = 512;

struct ExactSearchOptions {
  std::size_t keep = 1;
  // Candidates with longer estimates are dropped, ...
  double ceiling_s = std::numeric_limits<double>::infinity();
  // ... and those that are longer than the best by more than this factor.
  double spread = std::numeric_limits<double>::infinity();
  // Known candidates, rated for the table's shape: the better they are, the sooner the search ends.
  std::vector<Candidate> known = {};
  std::int64_t* tails = nullptr;  // output: the number of tails examined
};

// The best candidates by estimate, best first; fewer than `keep` if fewer exist within the limits.
// The first is the best of all within the limits; of the others, some that use the same slots in
// another order may be missing. Deterministic. REQUIRES: at most kExactSlotsMax usable slots.
[[nodiscard]] std::vector<Candidate> search_exactly(const StageTable& table,
                                                    const SearchSpace& space,
                                                    const ExactSearchOptions& options);

}  // namespace motley
