// The worker's main job: one rank of a training run.
#pragma once

#include "base/result.h"
#include "pipeline/execute/activity.h"
#include "protocol/launcher_channel.h"
#include "protocol/protocol.h"

namespace motley {

// Connects to the other ranks, trains from where the job says to its end, reports every step, saves
// shards when they are due. Returns the first failure.
[[nodiscard]] Result<void> run_train_job(const Job& job,
                                         LauncherChannel& launcher,
                                         Activity& activity);

}  // namespace motley
