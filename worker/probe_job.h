// The worker's probing job: how fast the links from this machine to the others are.
#pragma once

#include "base/result.h"
#include "protocol/protocol.h"
#include "protocol/worker_channel.h"

namespace motley {

// One worker a machine. options: "rank" of this one; "machines", the addresses of all, by rank;
// "seconds" for each directed pair. The pairs are measured one after another, in the same order
// everywhere. Sends a "network" event (which interface, and why), then for each directed pair a
// "link" event from the end that measured and a "served" event from the other.
[[nodiscard]] Result<void> run_probe_job(const Job& job, WorkerChannel& channel);

}  // namespace motley
