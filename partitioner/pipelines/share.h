// Sharing: a layer beside a boundary on both devices there, each for a part of the micro-batches.
// Whole layers rarely fit the speeds of devices; with a shared one, a device that would idle takes
// as much of its neighbour's work as it has time for, and what crosses the link stays the same.
#pragma once

#include <vector>

#include "partitioner/cost/search_space.h"

namespace motley {

// The candidates that share one layer more, each at a boundary between two stages of one slot: the
// last layer before it or the first one behind it, of which the slot that did not have it takes
// `taken` of the micro-batches. A stage that has no other layer becomes a shared one as it is; else
// the layer becomes a stage. Not rated. REQUIRES: the candidate has its shares; taken is positive
// and less than they sum up to.
[[nodiscard]] std::vector<Candidate> shared_layers(const Candidate& candidate,
                                                   int layer_count,
                                                   int taken);

// The candidates that share two layers more, one on each side of a device between two others, which
// may pay only together. It takes `first` of the micro-batches of a layer of one neighbour, and
// either gives `second` of one of its own to the other or takes `second` of one of the other's too.
// Not rated. REQUIRES: as shared_layers(), of both numbers.
[[nodiscard]] std::vector<Candidate> layers_shared_on_both_sides(const Candidate& candidate,
                                                                 int layer_count,
                                                                 int first,
                                                                 int second);

// The candidates in which, of one stage on two slots, one takes a micro-batch more and the other
// one less. Not rated.
[[nodiscard]] std::vector<Candidate> shifted_shares(const Candidate& candidate);

// The candidates of which one cut lies a layer further to the front or to the back. Not rated.
[[nodiscard]] std::vector<Candidate> moved_cuts(const Candidate& candidate, int layer_count);

}  // namespace motley
