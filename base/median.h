// The middle of repeated measurements, and how far they lie from it.
#pragma once

#include <vector>

namespace motley {

// The upper of the two middle values where their count is even. REQUIRES: values is not empty.
[[nodiscard]] double median(std::vector<double> values);

struct MedianAndSpread {
  double median = 0;
  double spread = 0;  // the median of the absolute deviations from it
};

// REQUIRES: values is not empty.
[[nodiscard]] MedianAndSpread median_and_spread(std::vector<double> values);

}  // namespace motley
