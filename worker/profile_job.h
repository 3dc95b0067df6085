// The worker's profiling job: measures how fast this device computes each kind of layer.
#pragma once

#include "base/result.h"
#include "protocol/protocol.h"
#include "protocol/worker_channel.h"

namespace motley {

// Sends a "result" event with the profile of this device (named options.machine): every kind of
// layer of the job's model at each size of options.sizes (samples) that the time permits, forward
// and backward, the optimizer, codecs and messages. Values that this machine stored earlier are
// used if a short sample agrees with them, unless options.measure requests new measurements; new
// values are stored. Before that each kind of layer of a package is compared with its reference
// (worker/check/layer_checks.h), once for each device. If options.company says that other devices
// are measured too, it also measures how fast the device is while those of the same computer are
// idle.
[[nodiscard]] Result<void> run_profile_job(const Job& job, WorkerChannel& channel);

}  // namespace motley
