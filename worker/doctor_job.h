// The worker's jobs that inspect its machine and report.
#pragma once

#include "base/result.h"
#include "protocol/protocol.h"
#include "protocol/worker_channel.h"

namespace motley {

// For `motley doctor`. Joins no group. options: "peers", the addresses of the other machines;
// "mark" and "mark_text", a file that the launcher created in the run folder and its contents, both
// empty if it could not. Sends a "facts" event (protocol/machine_facts.h).
[[nodiscard]] Result<void> run_doctor_job(const Job& job, WorkerChannel& channel);

// Reports the devices only. Joins no group. options: "details", whether to report everything, which
// takes time and device memory. Sends a "devices" event (protocol/device_facts.h).
[[nodiscard]] Result<void> run_devices_job(const Job& job, WorkerChannel& channel);

}  // namespace motley
