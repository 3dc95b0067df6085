// Small changes to a candidate that make its step shorter.
#pragma once

#include <functional>
#include <vector>

#include "partitioner/cost/search_space.h"
#include "partitioner/cost/step_estimate.h"

namespace motley {

// Gives each boundary between single slots the codec that serves the estimate best, one after the
// other from the front, and rates the candidate. False when it does not fit.
[[nodiscard]] bool choose_codecs(const StepEstimate& estimate, Candidate& candidate);

// Rates a changed candidate and says whether it is better than the one it was made from.
using TakesChange = std::function<bool(Candidate& changed)>;

// Tries small changes, one after the other from the front, and goes on from each that `takes`
// agrees to, until none is left or `work_max` is spent (a trial costs its number of stages): cuts
// move by one layer, also two neighbours together, neighbours exchange their slots or merge into
// one of them, and a stage moves to one of the `spare` slots or, where these are few, also runs on
// it.
void descend(const StepEstimate& estimate,
             const std::vector<int>& spare,
             long work_max,
             const TakesChange& takes,
             Candidate& candidate);

// The descent by the estimate, over the slots that the candidate has.
// REQUIRES: the candidate is rated.
void polish(const StepEstimate& estimate, Candidate& candidate);

}  // namespace motley
