// The worker's job for `motley doctor`: says what it finds on its machine.
#pragma once

#include "base/result.h"
#include "protocol/protocol.h"
#include "protocol/worker_channel.h"

namespace motley {

// Joins nobody. options: "peers", the addresses of the other machines; "mark" and "mark_text", a
// file that the launcher left in the run folder and what stands in it, both empty where it could
// not. Sends a "facts" event (protocol/machine_facts.h).
[[nodiscard]] Result<void> run_doctor_job(const Job& job, WorkerChannel& channel);

}  // namespace motley
