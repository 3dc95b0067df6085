#include "plan/assign_micro_batches.h"

#include <algorithm>

#include "tests/support/property.h"

namespace motley {
namespace {

TEST(MostInARow, CountsEachReplicasOwn) {
  const std::vector<std::size_t> owners = assign_micro_batches(std::vector{3, 1});
  EXPECT_EQ(owners, (std::vector<std::size_t>{0, 0, 1, 0}));
  EXPECT_EQ(most_in_a_row(owners, 2, 1), (std::vector{1, 1}));
  EXPECT_EQ(most_in_a_row(owners, 2, 2), (std::vector{2, 1}));
  EXPECT_EQ(most_in_a_row(owners, 2, 3), (std::vector{2, 1}));
  EXPECT_EQ(most_in_a_row(owners, 2, 4), (std::vector{3, 1}));
  EXPECT_EQ(most_in_a_row(owners, 3, 100), (std::vector{3, 1, 0}));
}

RC_GTEST_PROP(MostInARow, IsTheMostOfAnyRow, ()) {
  const auto replicas = *rc::gen::inRange<std::size_t>(1, 5);
  const auto owners =
      *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(0, replicas));
  const int window = *rc::gen::inRange(1, 12);
  const std::vector<int> most = most_in_a_row(owners, replicas, window);
  for (std::size_t replica = 0; replica < replicas; ++replica) {
    std::ptrdiff_t expected = 0;
    for (auto from = owners.begin(); from != owners.end(); ++from) {
      const auto row = std::min<std::ptrdiff_t>(window, owners.end() - from);
      expected = std::max(expected, std::count(from, from + row, replica));
    }
    RC_ASSERT(most[replica] == expected);
  }
}

}  // namespace
}  // namespace motley
