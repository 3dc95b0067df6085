// Which ranks hold copies of the same parameters: copies that get the same sums of gradients and
// must stay equal to the bit.
#pragma once

#include <optional>
#include <vector>

#include "base/ids.h"
#include "plan/plan.h"

namespace motley {

struct CopyGroup {
  std::optional<ChunkId> chunk;  // a chunk with replicas; nothing: the tied parameter
  std::vector<Rank> ranks;
};

// The chunks with replicas in their order and, when it is shared across ranks, the tied parameter.
[[nodiscard]] std::vector<CopyGroup> copy_groups(const Plan& plan, bool tied_across_ranks);

// Whether the rank holds one of the copies.
[[nodiscard]] bool holds_copy(const CopyGroup& group, Rank rank);

}  // namespace motley
