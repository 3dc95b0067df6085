#include "training/timing.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/check.h"

namespace motley {

double median(std::vector<double> values) {
  MOTLEY_CHECK(!values.empty(), "nothing was measured");
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

Timing summarise(std::vector<double> times_s) {
  Timing timing;
  timing.median_s = median(times_s);
  for (double& time_s : times_s) time_s = std::abs(time_s - timing.median_s);
  timing.spread_s = median(std::move(times_s));
  return timing;
}

}  // namespace motley
