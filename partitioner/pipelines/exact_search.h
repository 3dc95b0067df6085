// The exact search for few slots: every order of every subset, alone or grouped into replicas,
// every cut, every codec of every boundary.
//
// A dynamic programme from the last stage backwards: for each set of slots in use, stage in front,
// number of micro-batches under way, last stage, first layer and codec of the boundary before it,
// it keeps every tail that no other beats in sum, period and load. All three only grow when a stage
// is put in front, and nothing else of a tail matters for what can be put there, so nothing better
// is lost. Tails whose lower bound (free_slots_bound.h) exceeds what is wanted are dropped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "partitioner/cost/search_space.h"
#include "partitioner/cost/stage_table.h"

namespace motley {

// Above so many usable slots, or so many layers, use period_search.h: the work grows with the
// orders of the slots and with the square of the layers.
inline constexpr std::size_t kExactSlotsMax = 6;
inline constexpr int kExactLayersMax = 512;

struct ExactSearchOptions {
  std::size_t keep = 1;
  // Candidates that are estimated longer are not wanted, ...
  double ceiling_s = std::numeric_limits<double>::infinity();
  // ... nor those that are longer than the best by more than this factor.
  double spread = std::numeric_limits<double>::infinity();
  // Known candidates, rated under the table's shape: the better they are, the sooner it ends.
  std::vector<Candidate> known = {};
  std::int64_t* tails = nullptr;  // is set to how many were looked at
};

// The best candidates by estimate, best first; fewer than `keep` when fewer exist or are wanted.
// The first is the best of all that are wanted; of those behind it, some that use the same slots
// in another order may be left out. Deterministic. REQUIRES: at most kExactSlotsMax usable slots.
[[nodiscard]] std::vector<Candidate> search_exactly(const StageTable& table,
                                                    const SearchSpace& space,
                                                    const ExactSearchOptions& options);

}  // namespace motley
