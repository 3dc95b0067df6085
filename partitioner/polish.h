// Small changes to a candidate that make its estimate shorter.
#pragma once

#include "partitioner/search_space.h"
#include "partitioner/step_estimate.h"

namespace motley {

// Gives each boundary between single slots the codec that serves the estimate best, one after the
// other from the front, and rates the candidate. False when it does not fit.
[[nodiscard]] bool choose_codecs(const StepEstimate& estimate, Candidate& candidate);

// Moves cuts by one layer, drops stages and exchanges neighbours as long as the estimate becomes
// shorter, within a bounded number of trials. The candidate stays one that fits.
// REQUIRES: the candidate is rated.
void polish(const StepEstimate& estimate, Candidate& candidate);

}  // namespace motley
