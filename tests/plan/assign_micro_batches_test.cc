#include "plan/assign_micro_batches.h"

#include <algorithm>

#include "tests/support/property.h"

namespace motley {
namespace {

TEST(MaxInWindow, CountsEachReplicasOwn) {
  const std::vector<std::size_t> owners = assign_micro_batches(std::vector{3, 1});
  EXPECT_EQ(owners, (std::vector<std::size_t>{0, 0, 1, 0}));
  EXPECT_EQ(max_in_window(owners, 2, 1), (std::vector{1, 1}));
  EXPECT_EQ(max_in_window(owners, 2, 2), (std::vector{2, 1}));
  EXPECT_EQ(max_in_window(owners, 2, 3), (std::vector{2, 1}));
  EXPECT_EQ(max_in_window(owners, 2, 4), (std::vector{3, 1}));
  EXPECT_EQ(max_in_window(owners, 3, 100), (std::vector{3, 1, 0}));
}

RC_GTEST_PROP(MaxInWindow, IsTheMaximumOverAllWindows, ()) {
  const auto replicas = *rc::gen::inRange<std::size_t>(1, 5);
  const auto owners =
      *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(0, replicas));
  const int window = *rc::gen::inRange(1, 12);
  const std::vector<int> largest = max_in_window(owners, replicas, window);
  for (std::size_t replica = 0; replica < replicas; ++replica) {
    std::ptrdiff_t expected = 0;
    for (auto first = owners.begin(); first != owners.end(); ++first) {
      const auto length = std::min<std::ptrdiff_t>(window, owners.end() - first);
      expected = std::max(expected, std::count(first, first + length, replica));
    }
    RC_ASSERT(largest[replica] == expected);
  }
}

}  // namespace
}  // namespace motley
