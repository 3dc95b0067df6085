// Tracks: what each replica of each chunk computes, in order, and how the tracks of one rank become
// one order. Loads, transfers and what ends a step are put around it by the schedules.
#pragma once

#include <vector>

#include "base/ids.h"
#include "pipeline/schedule/action.h"
#include "pipeline/schedule/schedules.h"

namespace motley {

// What one replica of a chunk computes, in order, when it has a rank of its own.
struct Track {
  Rank rank;
  std::vector<Action> order;  // forwards and backwards of one chunk
};

// The tracks of a chunk through which at most `window` micro-batches travel at a time: on one rank,
// `window` forwards, then backward and forward in turn. With several replicas each does its own
// micro-batches' part of that order, so the order of one rank is a run of them all, and what cannot
// deadlock undivided cannot deadlock divided.
[[nodiscard]] std::vector<Track> tracks_of(const std::vector<Rank>& owners,
                                           ChunkId chunk,
                                           int window);

// Gives each rank one order of the computing of all its tracks, by running the tracks in unit time
// steps: in each step each rank runs the most urgent action of its tracks whose input exists. The
// tracks cannot deadlock when each has a rank of its own, so in each step at least one action of
// some track can run; and as the result is the record of a run that reached the end, it cannot
// deadlock either, for any map of micro-batches to ranks.
//
// A track is looked at only when its next action may have become ready, so merging takes
// O(actions x log tracks of a rank). [Rank]
[[nodiscard]] std::vector<std::vector<Action>> merge_tracks(const ScheduleInput& input,
                                                            std::vector<Track> tracks);

}  // namespace motley
