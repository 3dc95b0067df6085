#include "pipeline/schedule/copy_groups.h"

#include <algorithm>
#include <utility>

#include "pipeline/schedule/process_group.h"
#include "plan/gradient_group.h"

namespace motley {

std::vector<CopyGroup> copy_groups(const Plan& plan, bool tied_across_ranks) {
  std::vector<CopyGroup> groups;
  for (ChunkId chunk{0}; chunk.value < plan.chunk_count(); ++chunk.value) {
    std::vector<Rank> ranks = replica_ranks(plan.chunks[chunk.index()]);
    if (ranks.size() > 1) groups.push_back({chunk, std::move(ranks)});
  }
  if (tied_across_ranks) groups.push_back({{}, tied_parameter_ranks(plan)});
  return groups;
}

bool holds_copy(const CopyGroup& group, Rank rank) {
  return std::ranges::find(group.ranks, rank) != group.ranks.end();
}

}  // namespace motley
