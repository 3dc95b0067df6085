// List scheduling of split backward: the order in which each rank computes, found by running the
// step on the times of the plan.
//
// Whenever a rank has nothing under way it takes, of what its chunks could do now, a gradient of an
// input before a forward and the lower micro-batch before the higher; and where it could do
// neither, its oldest weight part, of a chunk with replicas before others, as the sum of their
// gradients can then begin. What a chunk could do is bounded by the micro-batches that the rank may
// hold: between forward and backward, and between the two parts of backward. A gradient of an input
// for which the latter leaves no room waits for its chunk's oldest weight part.
//
// It always ends. Of the micro-batches that are not through yet let m be the lowest. A rank passes
// each part of a chunk in the order of micro-batches, so whatever it holds of a chunk before m
// comes there is lower than m, and that is through: no bound and no turn holds m up, and a rank
// that can do something for m does it or something else that ends. As the orders are the record of
// a run that ended, no run of them can deadlock, however long its parts take.
//
// The times are whole numbers, so that every rank makes the same schedule from the plan.
// After the greedy schedules of Qi et al., "Zero Bubble Pipeline Parallelism", arXiv 2401.10241.
#pragma once

#include <vector>

#include "pipeline/schedule/action.h"
#include "pipeline/schedule/schedules.h"

namespace motley {

// F, BI and BW of every rank, [Rank]. windows, queued_weights_max: [ChunkId], from 1; of a replica
// its own of any row of so many (max_in_window).
// O(actions x log actions).
[[nodiscard]] std::vector<std::vector<Action>> list_schedule(
    const ScheduleInput& input,
    const std::vector<int>& windows,
    const std::vector<int>& queued_weights_max);

}  // namespace motley
