// Shortfall: by how much memory the model fails to fit, for the error that says so.
#pragma once

#include <cstdint>
#include <vector>

#include "partitioner/stage_table.h"

namespace motley {

// The stage that is short of most memory.
struct Shortfall {
  int slot = 0;
  int first_layer = 0;
  int last_layer = 0;  // one past its last
  std::int64_t needed_bytes = 0;
  std::int64_t missing_bytes = 0;  // <= 0: it fits
};

// Of given stages.
[[nodiscard]] Shortfall shortfall_of(const StageTable& table,
                                     const std::vector<int>& slots,
                                     const std::vector<int>& first_layers);

// Of the cuts that come nearest to fitting, with the slots in the given order and any left out.
// stages: exactly that many; 0 = any number. REQUIRES: stages <= slots and layers.
[[nodiscard]] Shortfall smallest_shortfall(const StageTable& table, int stages);

}  // namespace motley
