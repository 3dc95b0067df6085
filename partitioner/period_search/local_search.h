// Local search: small changes to a candidate that shorten its step.
#pragma once

#include <functional>
#include <vector>

#include "partitioner/cost/search_space.h"
#include "partitioner/cost/step_estimate.h"

namespace motley {

// Gives each boundary between single slots the codec with the best estimate, one after the other
// from the front, and rates the candidate. False if it does not fit.
[[nodiscard]] bool choose_codecs(const StepEstimate& estimate, Candidate& candidate);

// Rates a changed candidate and returns whether it is better than its origin.
using TakesChange = std::function<bool(Candidate& changed)>;

// Tries small changes, one after the other from the front, and continues from each that `takes`
// accepts, until none is left or `work_max` is spent (a trial costs its number of stages). Cuts
// move by one layer, also two adjacent ones together. Neighbours exchange their slots or merge into
// one of them. A stage moves to one of the `spare` slots or, if these are few, also runs on it.
void descend(const StepEstimate& estimate,
             const std::vector<int>& spare,
             long work_max,
             const TakesChange& takes,
             Candidate& candidate);

// Local search by the estimate, over the candidate's own slots. REQUIRES: the candidate is rated.
void local_search(const StepEstimate& estimate, Candidate& candidate);

}  // namespace motley
