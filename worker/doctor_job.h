// The worker's jobs that look around on its machine and say what they find.
#pragma once

#include "base/result.h"
#include "protocol/protocol.h"
#include "protocol/worker_channel.h"

namespace motley {

// Of `motley doctor`. Joins nobody. options: "peers", the addresses of the other machines; "mark"
// and "mark_text", a file that the launcher left in the run folder and what stands in it, both
// empty where it could not. Sends a "facts" event (protocol/machine_facts.h).
[[nodiscard]] Result<void> run_doctor_job(const Job& job, WorkerChannel& channel);

// What is asked of devices alone. Joins nobody. options: "details", whether all is to be said of
// them, also what takes a moment, and memory of theirs. Sends a "devices" event
// (protocol/device_facts.h).
[[nodiscard]] Result<void> run_devices_job(const Job& job, WorkerChannel& channel);

}  // namespace motley
