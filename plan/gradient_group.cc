#include "plan/gradient_group.h"

#include <algorithm>

#include "base/check.h"

namespace motley {

std::vector<Rank> replica_ranks(const ChunkPlan& chunk) {
  std::vector<Rank> ranks;
  for (const Replica& replica : chunk.replicas) ranks.push_back(replica.rank);
  return ranks;
}

std::vector<Rank> tied_members(const Plan& plan) {
  std::vector<Rank> ranks = replica_ranks(plan.chunks.front());
  for (const Replica& replica : plan.chunks.back().replicas) {
    if (!plan.chunks.front().is_on(replica.rank)) ranks.push_back(replica.rank);
  }
  return ranks;
}

int member_number(const std::vector<Rank>& group_members, Rank rank) {
  const auto found = std::ranges::find(group_members, rank);
  MOTLEY_CHECK(found != group_members.end(), "rank {} is not one of {} members", rank.value,
               group_members.size());
  return static_cast<int>(found - group_members.begin());
}

}  // namespace motley
