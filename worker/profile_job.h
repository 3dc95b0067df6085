// The worker's profiling job: how fast this device computes each kind of layer.
#pragma once

#include "base/result.h"
#include "protocol/protocol.h"
#include "protocol/worker_channel.h"

namespace motley {

// Sends a "result" event with the profile of this device (named options.machine): every different
// layer of the job's model at each size of options.sizes (samples) that the time allows, forward
// and backward, the optimizer, codecs and messages. What this machine has kept of an earlier start
// is taken where a short sample agrees with it, unless options.measure asks for new measurements;
// what is new is kept. Before that each different layer of a package is compared with its reference
// (worker/check/layer_checks.h), once for each device. Where options.company says that other
// devices are measured with it, it also finds out how fast the device is while those of the same
// computer rest.
[[nodiscard]] Result<void> run_profile_job(const Job& job, WorkerChannel& channel);

}  // namespace motley
