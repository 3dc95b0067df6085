// The one check that every schedule must pass before it runs.
#pragma once

#include <vector>

#include "base/result.h"
#include "pipeline/schedule/action.h"

namespace motley {

// What a schedule holds at once, at most: micro-batches between forward and backward, and between
// the two parts of backward, posted receives, and values that were made for another rank and are
// not sent yet.
struct ScheduleStats {
  std::vector<int> peak_in_flight;        // [ChunkId], of the replica that holds most
  std::vector<int> peak_queued_weights;   // [ChunkId], of the replica that holds most
  std::vector<int> peak_posted_receives;  // [Rank]
  std::vector<int> peak_unsent;           // [Rank]
};

// Proves, by running it without computing, that the executor can run the schedule and computes what
// one rank alone would: every action has what it needs (pipeline/schedule/action_rules.h), every
// micro-batch passes every chunk exactly once forward and (unless forward only) backward in
// micro-batch order, whole or in its two parts, each of them in that order, every send has its
// receive, each holder of a replicated chunk sums its gradient once and, with tied_across_ranks,
// each of the tied parameter the same way, nothing deadlocks, and vote and step come once, last.
// kInternal, with the schedule's text, the offending action and the rule, when it does not hold.
//
// tied_across_ranks: several ranks hold a use of a tied parameter, as for make_schedule.
[[nodiscard]] Result<ScheduleStats> validate_schedule(const Schedule& schedule,
                                                      bool tied_across_ranks);

}  // namespace motley
