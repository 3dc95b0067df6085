// Shortfall: by how much memory the model fails to fit, for the error that says so.
#pragma once

#include <cstdint>

#include "partitioner/cost/search_space.h"
#include "partitioner/cost/stage_table.h"

namespace motley {

// The stage that is short of most memory.
struct Shortfall {
  int slot = 0;
  int first_layer = 0;
  int last_layer = 0;  // one past its last
  std::int64_t needed_bytes = 0;
  std::int64_t missing_bytes = 0;  // <= 0: it fits
};

// Of given stages of one slot each. recompute: stages may recompute where that needs less memory.
[[nodiscard]] Shortfall shortfall_of(const StageTable& table,
                                     const Candidate& candidate,
                                     bool recompute);

// Of the cuts that come nearest to fitting, with the usable slots in the given order and any left
// out. Of very many slots only those with the most memory, and of very many layers only some cuts
// are tried. REQUIRES: space.stages <= slots and layers.
[[nodiscard]] Shortfall smallest_shortfall(const StageTable& table,
                                           const SearchSpace& space,
                                           bool recompute);

}  // namespace motley
