#include "pipeline/schedule/copy_groups.h"

#include <vector>

#include <gtest/gtest.h>

namespace motley {
namespace {

TEST(CopyGroups, AreTheRanksThatHoldTheSame) {
  Plan plan;
  plan.ranks.resize(3);
  plan.chunks = {{0, 1, {{Rank{0}, 2}}}, {1, 1, {{Rank{1}, 1}, {Rank{2}, 1}}}};
  const auto apart = copy_groups(plan, /*tied_across_ranks=*/false);
  ASSERT_EQ(apart.size(), 1U);
  EXPECT_EQ(apart[0].chunk, ChunkId{1});
  EXPECT_EQ(apart[0].ranks, (std::vector{Rank{1}, Rank{2}}));
  const auto tied = copy_groups(plan, /*tied_across_ranks=*/true);
  ASSERT_EQ(tied.size(), 2U);
  EXPECT_FALSE(tied[1].chunk.has_value());
  EXPECT_EQ(tied[1].ranks, (std::vector{Rank{0}, Rank{1}, Rank{2}}));
}

}  // namespace
}  // namespace motley
