// The worker's summing job: how long the sum over replicas takes between the machines.
#pragma once

#include "base/result.h"
#include "protocol/protocol.h"
#include "protocol/worker_channel.h"

namespace motley {

// One worker a rank. options: "rank" of this one; "machines", how many ranks each machine has,
// which are numbered machine by machine; "codecs", chains to sum with, one after another; "values"
// on each rank; "runs" of each. Sends a "sum" event for each codec (measure/allreduce_bench.h).
[[nodiscard]] Result<void> run_allreduce_job(const Job& job, WorkerChannel& channel);

}  // namespace motley
