// What a plan needs of each rank's memory, by place, by the order of its schedule.
#pragma once

#include <cstdint>
#include <vector>

#include "pipeline/schedule/action.h"
#include "plan/plan.h"

namespace motley {

class CostModel;

// The memory of a rank's process at the moment when it holds most, in bytes.
struct RankMemory {
  std::int64_t process = 0;    // without any layer: programs, libraries, threads, connections
  std::int64_t constants = 0;  // frozen weights, masks, tables
  std::int64_t values = 0;     // parameters and statistics
  std::int64_t gradients = 0;
  std::int64_t moments = 0;
  std::int64_t sums = 0;           // what sums of gradients keep and have under way
  std::int64_t data = 0;           // that is loaded from
  std::int64_t micro_batches = 0;  // between forward and backward, and at boundaries
  std::int64_t workspace = 0;      // of what computes at that moment
  std::int64_t allocator = 0;      // what the allocator holds beyond that

  [[nodiscard]] std::int64_t bytes() const {
    return process + constants + values + gradients + moments + sums + data + micro_batches +
           workspace + allocator;
  }
};

// [Rank] What its chunks and its sums always need, and at the moment of the step where that is
// most, what it holds of micro-batches and the workspace of what it computes. Micro-batches count
// from the end of their forward to that of their backward, of which the first part leaves what the
// weight part needs. rank_slots: as slots_of_ranks gives them.
//
// REQUIRES: schedule, plan and rank_slots agree in ranks and chunks; every rank has a chunk.
[[nodiscard]] std::vector<RankMemory> peak_memory(const Schedule& schedule,
                                                  const Plan& plan,
                                                  const CostModel& cost,
                                                  const std::vector<int>& rank_slots);

// [Rank] The bytes of all places together.
[[nodiscard]] std::vector<std::int64_t> peak_memory_bytes(const Schedule& schedule,
                                                          const Plan& plan,
                                                          const CostModel& cost,
                                                          const std::vector<int>& rank_slots);

}  // namespace motley
