// The worker's main job: one rank of a training run.
#pragma once

#include "base/result.h"
#include "pipeline/execute/activity.h"
#include "protocol/protocol.h"
#include "protocol/worker_channel.h"

namespace motley {

// Connects to the other ranks, trains from where the job says to its end, reports every step, saves
// shards when they are due. Returns the first failure.
[[nodiscard]] Result<void> run_train_job(const Job& job,
                                         WorkerChannel& channel,
                                         Activity& activity);

}  // namespace motley
