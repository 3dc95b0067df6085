// The worker's sampling job: text from a checkpoint.
#pragma once

#include "base/progress_counter.h"
#include "base/result.h"
#include "protocol/protocol.h"
#include "protocol/worker_channel.h"

namespace motley {

// Loads the model from job.resume_from onto job.device and continues options.prompt (a list of
// tokens) by options.tokens tokens, drawn at options.temperature (0 = always the most likely) from
// the options.top_k most likely (0 = all) with options.seed. Sends a "result" event with the new
// tokens.
[[nodiscard]] Result<void> run_generate_job(const Job& job,
                                            WorkerChannel& channel,
                                            ProgressCounter& work);

}  // namespace motley
