#include "pipeline/schedule/sum_group.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "pipeline/schedule/action.h"

namespace motley {

std::vector<Rank> replica_ranks(const ChunkPlan& chunk) {
  std::vector<Rank> ranks;
  for (const Replica& replica : chunk.replicas) ranks.push_back(replica.rank);
  return ranks;
}

std::vector<Rank> end_ranks(const Plan& plan) {
  std::vector<Rank> ranks = replica_ranks(plan.chunks.front());
  std::ranges::copy(replica_ranks(plan.chunks.back()), std::back_inserter(ranks));
  return distinct_ranks(ranks);
}

SumGroup sum_group(const Plan& plan, std::span<const Rank> ranks) {
  SumGroup group;
  group.machines = ranks_by_machine(
      ranks, [&](Rank rank) -> const std::string& { return plan.ranks[rank.index()].machine; });
  for (const std::vector<Rank>& members : group.machines) {
    const std::int64_t speed = plan.ranks[members.front().index()].link_mbps;
    // One unknown speed leaves the others without meaning.
    if (speed == 0) return {std::move(group.machines), {}};
    group.link_speeds.push_back(speed);
  }
  return group;
}

}  // namespace motley
