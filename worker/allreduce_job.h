// The worker's all-reduce job: the duration of an all-reduce over replicas between the machines.
#pragma once

#include "base/result.h"
#include "protocol/protocol.h"
#include "protocol/worker_channel.h"

namespace motley {

// One worker per rank. options: "rank" of this one; "machines", the number of ranks of each
// machine, numbered machine by machine; "codecs", the chains to measure one after another; "values"
// on each rank; "runs" of each. Sends a "sum" event for each codec (profiling/allreduce_bench.h).
[[nodiscard]] Result<void> run_allreduce_job(const Job& job, WorkerChannel& channel);

}  // namespace motley
