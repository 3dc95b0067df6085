#include "plan/gradient_group.h"

#include <gmock/gmock.h>

namespace motley {
namespace {

using testing::ElementsAre;

Plan plan_of(const std::vector<std::vector<int>>& chunks) {
  Plan plan;
  for (const std::vector<int>& ranks : chunks) {
    ChunkPlan& chunk = plan.chunks.emplace_back();
    for (const int rank : ranks) chunk.replicas.push_back({Rank{rank}, 1});
  }
  return plan;
}

TEST(GroupMembers, OfAChunkAreItsReplicas) {
  EXPECT_THAT(replica_ranks(plan_of({{0}, {1, 4}}).chunks[1]), ElementsAre(Rank{1}, Rank{4}));
}

TEST(GroupMembers, OfATiedParameterAreThoseOfBothEndsEachOnce) {
  EXPECT_THAT(tied_members(plan_of({{2, 3}, {4}, {0, 1}})),
              ElementsAre(Rank{2}, Rank{3}, Rank{0}, Rank{1}));
  EXPECT_THAT(tied_members(plan_of({{1, 2}, {0, 2, 3}})),
              ElementsAre(Rank{1}, Rank{2}, Rank{0}, Rank{3}));
  EXPECT_THAT(tied_members(plan_of({{0, 1}})), ElementsAre(Rank{0}, Rank{1}));
}

// The same replicas, [chunk][replica], with three numberings of the ranks.
TEST(GroupMembers, HaveTheirNumbersWhateverTheRanksAre) {
  for (const Plan& plan :
       {plan_of({{0, 1}, {2, 3}}), plan_of({{2, 3}, {0, 1}}), plan_of({{0, 2}, {1, 3}})}) {
    std::vector<int> numbers;
    for (const ChunkPlan& chunk : plan.chunks) {
      for (const Replica& replica : chunk.replicas) {
        numbers.push_back(member_number(replica_ranks(chunk), replica.rank));
        numbers.push_back(member_number(tied_members(plan), replica.rank));
      }
    }
    EXPECT_THAT(numbers, ElementsAre(0, 0, 1, 1, 0, 2, 1, 3));
  }
}

}  // namespace
}  // namespace motley
