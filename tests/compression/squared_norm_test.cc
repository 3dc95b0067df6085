#include "compression/kernels/squared_norm.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace motley {
namespace {

TEST(SquaredNorm, OfNothingIsZero) {
  EXPECT_EQ(squared_norm({}), 0.0);
}

// Integers are exact in any order.
RC_GTEST_PROP(SquaredNorm, AddsEverySquareOnce, ()) {
  const auto numbers = *rc::gen::container<std::vector<int>>(rc::gen::inRange(-1000, 1000));
  const std::vector<float> values(numbers.begin(), numbers.end());
  const double expected = std::inner_product(numbers.begin(), numbers.end(), numbers.begin(), 0.0);
  RC_ASSERT(squared_norm(values) == expected);
}

TEST(SquaredNorm, AddsLaneByLane) {
  std::vector<float> values(53);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 1.0F / static_cast<float>(i + 3);
  double lanes[16] = {};
  for (std::size_t i = 0; i < values.size(); ++i) {
    lanes[i % 16] += double{values[i]} * double{values[i]};
  }
  EXPECT_EQ(squared_norm(values), std::accumulate(lanes, lanes + 16, 0.0));
}

TEST(SquaredNorm, DoesNotOverflow) {
  const std::vector<float> values(1000, std::numeric_limits<float>::max());
  EXPECT_TRUE(std::isfinite(squared_norm(values)));
}

TEST(SquaredNorm, ShowsWhatIsNotFiniteAnywhere) {
  for (std::size_t i = 0; i < 40; ++i) {
    std::vector<float> values(40, 1.0F);
    values[i] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_TRUE(std::isnan(squared_norm(values))) << i;
    values[i] = -std::numeric_limits<float>::infinity();
    EXPECT_TRUE(std::isinf(squared_norm(values))) << i;
  }
}

}  // namespace
}  // namespace motley
