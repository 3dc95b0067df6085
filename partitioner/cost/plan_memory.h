// A plan's memory on each rank, by component, following the order of its schedule.
#pragma once

#include <cstdint>
#include <vector>

#include "pipeline/schedule/action.h"
#include "plan/plan.h"

namespace motley {

class CostModel;

// The memory of a rank's process at its peak, in bytes.
struct RankMemory {
  std::int64_t process = 0;    // without any layer: programs, libraries, threads, connections
  std::int64_t constants = 0;  // frozen weights, masks, tables
  std::int64_t values = 0;     // parameters and statistics
  std::int64_t gradients = 0;
  std::int64_t moments = 0;
  std::int64_t sums = 0;           // error-feedback state and messages in flight of all-reduces
  std::int64_t data = 0;           // resident data
  std::int64_t micro_batches = 0;  // between forward and backward, and at boundaries
  std::int64_t workspace = 0;      // of the computing at that moment
  std::int64_t allocator = 0;      // the allocator's overhead over the others

  [[nodiscard]] std::int64_t bytes() const {
    return process + constants + values + gradients + moments + sums + data + micro_batches +
           workspace + allocator;
  }
};

// [Rank] The constant memory of its chunks and all-reduces and, at the peak of the step, the memory
// of micro-batches and the workspace of the running action. A micro-batch counts from the end of
// its forward to the end of its backward; the first part of backward leaves what the weight part
// needs. rank_slots: the result of slots_of_ranks.
//
// REQUIRES: schedule, plan and rank_slots agree in ranks and chunks; every rank has a chunk.
[[nodiscard]] std::vector<RankMemory> peak_memory(const Schedule& schedule,
                                                  const Plan& plan,
                                                  const CostModel& cost,
                                                  const std::vector<int>& rank_slots);

// [Rank] The total of all components.
[[nodiscard]] std::vector<std::int64_t> peak_memory_bytes(const Schedule& schedule,
                                                          const Plan& plan,
                                                          const CostModel& cost,
                                                          const std::vector<int>& rank_slots);

}  // namespace motley
