#include "base/median.h"

#include <gtest/gtest.h>

namespace motley {
namespace {

TEST(Median, IsTheMiddleAndTheUpperOneOfTwo) {
  EXPECT_EQ(median({7}), 7);
  EXPECT_EQ(median({5, 1, 100}), 5);
  EXPECT_EQ(median({4, 1, 3, 2}), 3);
}

TEST(MedianAndSpread, TakesTheMedianOfTheDeviations) {
  const MedianAndSpread summary = median_and_spread({5, 1, 2, 100, 3});
  EXPECT_EQ(summary.median, 3);
  EXPECT_EQ(summary.spread, 2);
}

}  // namespace
}  // namespace motley
