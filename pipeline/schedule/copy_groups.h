// The ranks that hold copies of the same parameters: the copies are updated with the same
// all-reduced gradients and must stay bit-identical.
#pragma once

#include <optional>
#include <vector>

#include "base/ids.h"
#include "plan/plan.h"

namespace motley {

struct CopyGroup {
  std::optional<ChunkId> chunk;  // a chunk with replicas; nullopt: the tied parameter
  std::vector<Rank> ranks;
};

// The chunks with replicas in their order and, if it is shared across ranks, the tied parameter.
[[nodiscard]] std::vector<CopyGroup> copy_groups(const Plan& plan, bool tied_across_ranks);

// Whether the rank holds one of the copies.
[[nodiscard]] bool holds_copy(const CopyGroup& group, Rank rank);

}  // namespace motley
