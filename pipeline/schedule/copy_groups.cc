#include "pipeline/schedule/copy_groups.h"

#include <algorithm>
#include <utility>

namespace motley {

std::vector<CopyGroup> copy_groups(const Plan& plan, bool tied_across_ranks) {
  std::vector<CopyGroup> groups;
  const auto add_ranks = [](const ChunkPlan& chunk, CopyGroup& group) {
    for (const Replica& replica : chunk.replicas) {
      if (!holds_copy(group, replica.rank)) group.ranks.push_back(replica.rank);
    }
  };
  for (ChunkId chunk{0}; chunk.value < plan.chunk_count(); ++chunk.value) {
    CopyGroup group{chunk, {}};
    add_ranks(plan.chunks[chunk.index()], group);
    if (group.ranks.size() > 1) groups.push_back(std::move(group));
  }
  if (tied_across_ranks) {
    CopyGroup group;
    add_ranks(plan.chunks.front(), group);
    add_ranks(plan.chunks.back(), group);
    groups.push_back(std::move(group));
  }
  return groups;
}

bool holds_copy(const CopyGroup& group, Rank rank) {
  return std::ranges::find(group.ranks, rank) != group.ranks.end();
}

}  // namespace motley
