#include "plan/holders.h"

#include <algorithm>

#include "base/check.h"

namespace motley {

std::vector<Rank> replica_ranks(const ChunkPlan& chunk) {
  std::vector<Rank> ranks;
  for (const Replica& replica : chunk.replicas) ranks.push_back(replica.rank);
  return ranks;
}

std::vector<Rank> tied_holders(const Plan& plan) {
  std::vector<Rank> ranks = replica_ranks(plan.chunks.front());
  for (const Replica& replica : plan.chunks.back().replicas) {
    if (!plan.chunks.front().is_on(replica.rank)) ranks.push_back(replica.rank);
  }
  return ranks;
}

int holder_number(const std::vector<Rank>& holders, Rank rank) {
  const auto found = std::ranges::find(holders, rank);
  MOTLEY_CHECK(found != holders.end(), "rank {} is not one of {} holders", rank.value,
               holders.size());
  return static_cast<int>(found - holders.begin());
}

}  // namespace motley
