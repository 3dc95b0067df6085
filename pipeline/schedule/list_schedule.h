// List scheduling of split backward: finds the order in which each rank computes by simulating the
// step with the plan's times.
//
// An idle rank chooses among the ready actions of its chunks: a gradient of an input before a
// forward, and the lower micro-batch before the higher. If neither is ready, it runs its oldest
// weight part, of a chunk with replicas first, because its all-reduce can then begin. Two limits
// bound the micro-batches that a rank holds of a chunk: between forward and backward, and between
// the two parts of backward. If the second limit forbids a gradient of an input, the chunk's oldest
// weight part runs first.
//
// Termination: let m be the lowest unfinished micro-batch. A rank runs each part of a chunk in
// micro-batch order. Micro-batches of a chunk that it started before m are lower than m, and
// therefore finished. No limit and no choice blocks m: a rank that can advance m does so, or runs
// another action that ends. The order is the record of a run that finished, so no execution of it
// can deadlock, however long its parts take.
//
// The times are integers, so every rank generates the same schedule from the plan. After the greedy
// schedules of Qi et al., "Zero Bubble Pipeline Parallelism", arXiv 2401.10241.
#pragma once

#include <vector>

#include "pipeline/schedule/action.h"
#include "pipeline/schedule/schedules.h"

namespace motley {

// F, BI and BW of every rank, [Rank]. windows, queued_weights_max: [ChunkId], from 1. A replica's
// limit is the most of its own micro-batches among that many consecutive ones (max_in_window).
// O(actions x log actions).
[[nodiscard]] std::vector<std::vector<Action>> list_schedule(
    const ScheduleInput& input,
    const std::vector<int>& windows,
    const std::vector<int>& queued_weights_max);

}  // namespace motley
