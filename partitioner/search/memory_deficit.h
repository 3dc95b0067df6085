// Shortfall: the memory deficit of a model that does not fit, for the error message.
#pragma once

#include <cstdint>

#include "partitioner/cost/search_space.h"
#include "partitioner/cost/stage_table.h"

namespace motley {

// The stage with the largest memory deficit.
struct MemoryDeficit {
  int slot = 0;
  int first_layer = 0;
  int last_layer = 0;  // one past its last
  std::int64_t needed_bytes = 0;
  std::int64_t missing_bytes = 0;  // <= 0: it fits
};

// For given stages of one slot each. recompute: stages may recompute if that needs less memory.
[[nodiscard]] MemoryDeficit memory_deficit_of(const StageTable& table,
                                              const Candidate& candidate,
                                              bool recompute);

// For the cuts with the smallest deficit, on the usable slots in the given order, of which any may
// be left out. With very many slots only those with the most memory are tried, and with very many
// layers only some cuts. REQUIRES: space.stages <= slots and layers.
[[nodiscard]] MemoryDeficit smallest_memory_deficit(const StageTable& table,
                                                    const SearchSpace& space,
                                                    bool recompute);

}  // namespace motley
