// Tracks: the computing of each replica of each chunk, in order, and the merge of a rank's tracks
// into one order. The schedules insert loads, transfers and the end of the step.
#pragma once

#include <vector>

#include "base/ids.h"
#include "pipeline/schedule/action.h"
#include "pipeline/schedule/schedules.h"

namespace motley {

// The computing of one replica of a chunk, in order, if it has a rank of its own.
struct Track {
  Rank rank;
  std::vector<Action> order;  // forwards and backwards of one chunk
};

// The tracks of a chunk with at most `window` micro-batches in flight. On one rank: `window`
// forwards, then backward and forward alternately. Each of several replicas runs its own
// micro-batches' part of that order. The order of one rank is therefore a run of all of them, so
// what cannot deadlock undivided cannot deadlock divided.
[[nodiscard]] std::vector<Track> tracks_of(const std::vector<Rank>& owners,
                                           ChunkId chunk,
                                           int window);

// Merges the tracks of each rank into one order by running all tracks in unit time steps: in each
// step each rank runs the most urgent action of its tracks whose input exists. The tracks cannot
// deadlock if each has a rank of its own, so in each step at least one action of some track can
// run. The result is the record of a run that finished, so it cannot deadlock either, for any
// assignment of micro-batches to ranks.
//
// A track is examined only when its next action may have become ready, so merging takes O(actions x
// log tracks of a rank). [Rank]
[[nodiscard]] std::vector<std::vector<Action>> merge_tracks(const ScheduleInput& input,
                                                            std::vector<Track> tracks);

}  // namespace motley
