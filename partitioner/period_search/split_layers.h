// Sharing: places a layer at a boundary on both of its devices, each for a part of the
// micro-batches. Whole layers rarely match the speeds of devices. With a shared layer, a device
// that would idle takes over as much of its neighbour's work as it has time for, and the traffic on
// the link is unchanged.
#pragma once

#include <vector>

#include "partitioner/cost/search_space.h"

namespace motley {

// The candidates with one more shared layer, each at a boundary between two stages of one slot: the
// last layer before it or the first one behind it, of which the other slot takes `taken` of the
// micro-batches. A stage without another layer becomes a shared one as a whole; otherwise the layer
// becomes a stage. Not rated. REQUIRES: the candidate's shares are set; taken is positive and less
// than their sum.
[[nodiscard]] std::vector<Candidate> split_layers(const Candidate& candidate,
                                                  int layer_count,
                                                  int taken);

// The candidates with two more shared layers, one on each side of a device between two others,
// which may pay only together. It takes `first` of the micro-batches of a layer of one neighbour.
// It also either gives `second` of one of its own layers to the other neighbour, or takes `second`
// of one of that neighbour's. Not rated. REQUIRES: as split_layers(), for both numbers.
[[nodiscard]] std::vector<Candidate> layers_split_on_both_sides(const Candidate& candidate,
                                                                int layer_count,
                                                                int first,
                                                                int second);

// The candidates in which one micro-batch moves between the two slots of a stage. Not rated.
[[nodiscard]] std::vector<Candidate> shifted_splits(const Candidate& candidate);

// The candidates with one cut moved by a layer to the front or to the back. Not rated.
[[nodiscard]] std::vector<Candidate> moved_cuts(const Candidate& candidate, int layer_count);

}  // namespace motley
