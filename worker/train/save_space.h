// Whether the disk has room for the parts of all ranks, asked before any of them is written.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "comm/frames/frame_link.h"

namespace motley {

// REQUIRES: called by all ranks at the same step. They tell each other how much they need and how
// much they see free in which folder (SpaceReport::folder), so that all of them leave the disk
// alone when it has no room (kCorrupt on each). kPeer when a rank is lost.
[[nodiscard]] Result<void> agree_on_space(const SavePlace& place,
                                          Rank rank,
                                          int rank_count,
                                          FrameLink& link,
                                          Deadline deadline,
                                          std::uint64_t needed_bytes,
                                          std::uint64_t folder = 0);

}  // namespace motley
