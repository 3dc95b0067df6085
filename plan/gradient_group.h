// The process group of a gradient's all-reduce, in an order that does not depend on rank numbers,
// as long as the plan lists each chunk's replicas in the same order. Checkpoints name residuals by
// the position in it.
#pragma once

#include <vector>

#include "base/ids.h"
#include "plan/plan.h"

namespace motley {

// The replicas of a chunk, which all-reduce its gradient.
[[nodiscard]] std::vector<Rank> replica_ranks(const ChunkPlan& chunk);

// For a tied parameter on several ranks: the ranks with chunk 0, then those of the last chunk that
// do not have chunk 0.
[[nodiscard]] std::vector<Rank> tied_members(const Plan& plan);

// The rank's position in the group. REQUIRES: the rank is in it.
[[nodiscard]] int member_number(const std::vector<Rank>& group_members, Rank rank);

}  // namespace motley
