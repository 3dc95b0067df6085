// Timing: what repeated measurements say together.
#pragma once

#include <vector>

namespace motley {

struct Timing {
  double median_s = 0;
  double spread_s = 0;  // median absolute deviation
};

// REQUIRES: values is not empty.
[[nodiscard]] double median(std::vector<double> values);
[[nodiscard]] Timing summarise(std::vector<double> times_s);

}  // namespace motley
