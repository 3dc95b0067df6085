// Joining the process group of a worker, by a transport and addresses exchanged through the
// launcher, and leaving it.
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "comm/frames/frame_link.h"
#include "comm/transport/transport.h"
#include "protocol/launcher_channel.h"
#include "protocol/protocol.h"

namespace motley {

// Creates the job's transport for rank `self` of `rank_count` (a single rank gets an in-process
// one), sends an "address" event, waits for "addresses", and connects. Meanwhile "unreached" events
// report the peers that it cannot connect to. Other ranks may take any time to load while they make
// progress. `timeout_s`: TransportOptions::stall_timeout, with the channel's group;
// `unexpected_bytes_max` as there. kPeer if the launcher or a rank does not answer in time.
[[nodiscard]] Result<std::unique_ptr<Transport>> join_ranks(
    const Job& job,
    Rank self,
    int rank_count,
    LauncherChannel& launcher,
    double timeout_s,
    std::uint64_t unexpected_bytes_max = kUnexpectedBytesMax);

// Leaving closes connections and drops messages in flight, such as rank 0's answer to the last
// vote. So rank 0 leaves after a message from every other rank, sent after it received that answer.
// Errors are ignored here: the work is done. `step` is beyond the last one; `group` advances while
// other ranks still work, for example on a save.
void disconnect_ranks(
    FrameLink& link, Rank self, int rank_count, std::int64_t step, const ProgressClock& group);

}  // namespace motley
