// What a plan needs of each rank's memory, by the order of its schedule.
#pragma once

#include <cstdint>
#include <vector>

#include "partitioner/cost/cost_model.h"
#include "pipeline/schedule/action.h"
#include "plan/plan.h"

namespace motley {

// [Rank] Peak of its process: what its chunks and its sums always need, and at the moment of the
// step where that is most, what it holds of micro-batches and the workspace of what it computes.
// Micro-batches count from the end of their forward to that of their backward, of which the first
// part leaves what the weight part needs. rank_slots: as slots_of_ranks gives them.
//
// REQUIRES: schedule, plan and rank_slots agree in ranks and chunks; every rank has a chunk.
[[nodiscard]] std::vector<std::int64_t> peak_memory_bytes(const Schedule& schedule,
                                                          const Plan& plan,
                                                          const CostModel& cost,
                                                          const std::vector<int>& rank_slots);

}  // namespace motley
