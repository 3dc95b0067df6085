// How a worker joins the others of its group, by a transport and addresses exchanged by the
// launcher, and how it leaves them.
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "comm/frames/frame_link.h"
#include "comm/transport/transport.h"
#include "protocol/launcher_channel.h"
#include "protocol/protocol.h"

namespace motley {

// Makes the transport that the job names for rank `self` of `rank_count` (the only one needs none:
// it gets memory), sends an "address" event, waits for "addresses", and connects; "unreached"
// events tell meanwhile which peers it cannot connect to. The others may still load for as long as
// they get on with it. `timeout_s`: TransportOptions::patience, with the channel's group;
// `early_bytes_max` as there. kPeer when the launcher or a rank does not answer in time.
[[nodiscard]] Result<std::unique_ptr<Transport>> join_ranks(
    const Job& job,
    Rank self,
    int rank_count,
    LauncherChannel& launcher,
    double timeout_s,
    std::uint64_t early_bytes_max = kEarlyBytesMax);

// Leaving closes connections and drops what is still under way, such as rank 0's answer to the last
// vote. So rank 0 leaves after a word from everybody else, who got that answer before. What goes
// wrong here no longer matters: the work is done. `step` is beyond the last one, `group` touched
// while others still work, as one does that saves.
void disconnect_ranks(
    FrameLink& link, Rank self, int rank_count, std::int64_t step, const ProgressMark& group);

}  // namespace motley
