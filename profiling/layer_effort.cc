#include "profiling/layer_effort.h"

#include <algorithm>
#include <numeric>

namespace motley {

std::size_t affordable_sizes(const std::vector<int>& sizes,
                             double first_run_s,
                             int runs_min,
                             double seconds) {
  double needed_s = 0;
  std::size_t count = 0;
  for (; count < sizes.size(); ++count) {
    needed_s += runs_min * first_run_s * sizes[count] / sizes.front();
    if (needed_s > seconds) break;
  }
  return std::max<std::size_t>(1, count);
}

double share_of_size(const std::vector<int>& sizes,
                     std::size_t first,
                     std::size_t end,
                     double seconds) {
  const auto at = [&](std::size_t i) { return sizes.begin() + static_cast<std::ptrdiff_t>(i); };
  return seconds * sizes[first] / std::accumulate(at(first), at(end), 0.0);
}

}  // namespace motley
