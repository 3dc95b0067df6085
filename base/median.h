// The median of repeated measurements, and their deviation from it.
#pragma once

#include <vector>

namespace motley {

// For an even count, the upper of the two middle values. REQUIRES: values is not empty.
[[nodiscard]] double median(std::vector<double> values);

struct MedianAndSpread {
  double median = 0;
  double spread = 0;  // median of the absolute deviations from it
};

// REQUIRES: values is not empty.
[[nodiscard]] MedianAndSpread median_and_spread(std::vector<double> values);

}  // namespace motley
