// What a plan needs of each rank's memory, by the cost model.
#pragma once

#include <cstdint>

#include "partitioner/cost/cost_model.h"
#include "plan/plan.h"

namespace motley {

// Peak of the rank's process, which runs on that slot: the sum over its chunks, of which only one
// brings the process itself along.
[[nodiscard]] std::int64_t rank_memory_bytes(const Plan& plan,
                                             const CostModel& cost,
                                             int slot,
                                             Rank rank);

}  // namespace motley
