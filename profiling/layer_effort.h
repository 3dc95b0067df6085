// Distribution of a time budget over measurements.
#pragma once

#include <cstddef>
#include <vector>

namespace motley {

// The number of sizes, ascending, to measure in `seconds`, if a run of the first takes
// `first_run_s` and runs of the others take proportionally long. At least one, and no more than can
// each be run `runs_min` times. Times are nearly linear beyond small sizes, so the largest are left
// out.
[[nodiscard]] std::size_t affordable_sizes(const std::vector<int>& sizes,
                                           double first_run_s,
                                           int runs_min,
                                           double seconds);

// The share of `seconds` for `first` among the sizes from `first` to `end`, proportional to the
// size.
[[nodiscard]] double share_of_size(const std::vector<int>& sizes,
                                   std::size_t first,
                                   std::size_t end,
                                   double seconds);

}  // namespace motley
