// The worker's probe job: measures the links from this machine to the others.
#pragma once

#include "base/result.h"
#include "protocol/protocol.h"
#include "protocol/worker_channel.h"

namespace motley {

// One worker per machine. options: "rank" of this one; "machines", the addresses of all, by rank;
// "seconds" for each directed pair. The pairs are measured one after another, in the same order on
// all ranks. Sends a "network" event (the interface, and why it was chosen), then for each directed
// pair a "link" event from the measuring end and a "served" event from the other.
[[nodiscard]] Result<void> run_probe_job(const Job& job, WorkerChannel& channel);

}  // namespace motley
