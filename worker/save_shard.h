// One rank's part of a checkpoint, once all ranks know that the disk has room for all parts.
#pragma once

#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
#include "base/work_counter.h"
#include "checkpoint/checkpoint.h"
#include "comm/frames/frame_link.h"

namespace motley {

// REQUIRES: called by all ranks at the same step. They tell each other how much they need and how
// much they see free, so that all of them leave the disk alone when it has no room (kCorrupt on
// each). kPeer when a rank is lost, and otherwise as write_shard.
[[nodiscard]] Result<Shard> save_shard(const SavePlace& place,
                                       Rank rank,
                                       int rank_count,
                                       FrameLink& link,
                                       Deadline deadline,
                                       const std::vector<TensorView>& parameters,
                                       const std::vector<TensorView>& moments,
                                       WorkCounter* work);

}  // namespace motley
