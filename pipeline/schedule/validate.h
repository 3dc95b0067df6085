// The check that every schedule must pass before it runs.
#pragma once

#include <vector>

#include "base/result.h"
#include "pipeline/schedule/action.h"

namespace motley {

// Peak values of a schedule: micro-batches between forward and backward, and between the two parts
// of backward, posted receives, and unsent values for other ranks.
struct ScheduleStats {
  std::vector<int> peak_in_flight;        // [ChunkId], of the replica that holds most
  std::vector<int> peak_queued_weights;   // [ChunkId], of the replica that holds most
  std::vector<int> peak_posted_receives;  // [Rank]
  std::vector<int> peak_unsent;           // [Rank]
};

// Proves, by interpreting the schedule without computing, that the executor can run it and computes
// what one rank alone would:
// - Every action has its inputs (pipeline/schedule/action_rules.h).
// - Every micro-batch passes every chunk exactly once forward and (unless forward only) backward,
//   in micro-batch order, whole or in its two parts, each of them in that order.
// - Every send has its receive.
// - Each replica of a replicated chunk all-reduces its gradient once, and with tied_across_ranks
//   each rank with the tied parameter does so too; both within its island if there are islands.
// - Nothing deadlocks, and vote and step come once, last; after them at most one offer of
//   pseudo-gradients and its adoption, on all ranks or on none.
//
// kInternal, with the schedule's text, the offending action and the rule, if one does not hold.
//
// tied_across_ranks: several ranks hold a use of a tied parameter, as for make_schedule.
[[nodiscard]] Result<ScheduleStats> validate_schedule(const Schedule& schedule,
                                                      bool tied_across_ranks);

}  // namespace motley
