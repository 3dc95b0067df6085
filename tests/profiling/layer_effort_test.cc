#include "profiling/layer_effort.h"

#include <gtest/gtest.h>

namespace motley {
namespace {

TEST(LayerEffort, LeavesOutTheLargestWhereTimeIsShort) {
  const std::vector<int> sizes = {1, 2, 4, 16};
  // Three runs of each: 3 s, 9 s, 21 s, 69 s together.
  EXPECT_EQ(affordable_sizes(sizes, 1, 3, 70), 4U);
  EXPECT_EQ(affordable_sizes(sizes, 1, 3, 68), 3U);
  EXPECT_EQ(affordable_sizes(sizes, 1, 3, 10), 2U);
  EXPECT_EQ(affordable_sizes(sizes, 1, 3, 1), 1U);
}

TEST(LayerEffort, GivesEachSizeItsShareOfTheTime) {
  const std::vector<int> sizes = {1, 2, 4, 16};
  EXPECT_DOUBLE_EQ(share_of_size(sizes, 0, 3, 14), 2);
  EXPECT_DOUBLE_EQ(share_of_size(sizes, 1, 3, 12), 4);
  EXPECT_DOUBLE_EQ(share_of_size(sizes, 2, 3, 8), 8);
}

}  // namespace
}  // namespace motley
