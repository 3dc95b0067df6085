// The sum of a chunk's gradient over the ranks that hold it (R), in place.
//
// The values are cut into as many parts as there are ranks. Each rank is sent the others' values of
// its part, adds them in the order of the ranks, and sends the sums to all: every rank gets the
// same bits, each value crosses the network twice, and no rank has more to do than another. Large
// parts go in pieces, one after the other, so that the messages under way stay below a few MiB.
// Wire format: docs/formats/frame.md.
#pragma once

#include <cstdint>
#include <span>

#include "base/ids.h"
#include "base/result.h"
#include "comm/frame_link.h"

namespace motley {

struct ReplicaSum {
  ChunkId chunk;
  std::span<const Rank> holders;  // ascending, this rank among them, at least two
  std::int64_t step = 0;
  double timeout_s = 60;  // longest wait for one message
  std::size_t piece_floats_max = std::size_t{1}
                                 << 20;  // of all messages to or from one rank's part
};

// Called by all holders with as many values each. Returns the seconds spent waiting for messages.
// kPeer when a rank is lost or late, kCorrupt when a message does not fit; the values are then
// worthless.
[[nodiscard]] Result<double> sum_over_replicas(FrameLink& link,
                                               Rank self,
                                               const ReplicaSum& sum,
                                               std::span<float> values);

}  // namespace motley
