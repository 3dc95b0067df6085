// How far a time for measuring goes.
#pragma once

#include <cstddef>
#include <vector>

namespace motley {

// How many of the sizes, ascending, are worth measuring in `seconds` when a run of the first takes
// `first_run_s` and others take in proportion: at least one, and no more than can each be run
// `runs_min` times. Times are nearly a line beyond small sizes, so what is left out are the
// largest.
[[nodiscard]] std::size_t affordable_sizes(const std::vector<int>& sizes,
                                           double first_run_s,
                                           int runs_min,
                                           double seconds);

// The part of `seconds` for one of the sizes from `first` to `end`, in proportion to it.
[[nodiscard]] double share_of_size(const std::vector<int>& sizes,
                                   std::size_t first,
                                   std::size_t end,
                                   double seconds);

}  // namespace motley
