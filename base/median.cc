#include "base/median.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "base/check.h"

namespace motley {

double median(std::vector<double> values) {
  MOTLEY_CHECK(!values.empty(), "the median of nothing");
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

MedianAndSpread median_and_spread(std::vector<double> values) {
  MedianAndSpread result;
  result.median = median(values);
  for (double& value : values) value = std::abs(value - result.median);
  result.spread = median(std::move(values));
  return result;
}

}  // namespace motley
