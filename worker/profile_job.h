// The worker's profiling job: how fast this device computes each kind of layer.
#pragma once

#include "base/result.h"
#include "protocol/protocol.h"
#include "protocol/worker_channel.h"

namespace motley {

// Measures every different layer of the job's model at each size of options.sizes (samples),
// forward and backward, with medians of repeated runs after a warm-up, and sends a "result" event
// with the profile of this device (named options.machine).
[[nodiscard]] Result<void> run_profile_job(const Job& job, WorkerChannel& channel);

}  // namespace motley
