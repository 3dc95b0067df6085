// Who sums a gradient, in an order that stays when ranks get other numbers, as long as the plan
// lists the replicas of each chunk in their order. What a checkpoint keeps of a sum is named by it.
#pragma once

#include <vector>

#include "base/ids.h"
#include "plan/plan.h"

namespace motley {

// The replicas of a chunk, by whose sum its gradient becomes one.
[[nodiscard]] std::vector<Rank> replica_ranks(const ChunkPlan& chunk);

// Of a tied parameter that several ranks have: who holds chunk 0, and then, of the last chunk, who
// does not.
[[nodiscard]] std::vector<Rank> tied_holders(const Plan& plan);

// The place of one of them. REQUIRES: the rank is there.
[[nodiscard]] int holder_number(const std::vector<Rank>& holders, Rank rank);

}  // namespace motley
