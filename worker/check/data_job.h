// The data as this machine sees it.
#pragma once

#include "base/progress_counter.h"
#include "base/result.h"
#include "protocol/protocol.h"
#include "protocol/worker_channel.h"

namespace motley {

// Counts the training samples of the job's data. Joins no group. Sends a "data" event
// (protocol/data_message.h), or "no_data" with the cause if the data cannot be read on this
// machine.
[[nodiscard]] Result<void> run_data_job(const Job& job,
                                        WorkerChannel& channel,
                                        ProgressCounter& work);

}  // namespace motley
