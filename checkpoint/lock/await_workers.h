// Waits for workers that save their step after the loss of their launcher.
#pragma once

#include <filesystem>

#include "base/log.h"
#include "checkpoint/lock/launch_record.h"

namespace motley {

// Until no process marks the launch (mark_worker), at most `stall_s` after the last byte that its
// workers wrote; logs why. REQUIRES: the launcher of `record` is gone.
void await_workers(const std::filesystem::path& run_dir,
                   const LaunchRecord& record,
                   double stall_s,
                   const Log& log);

}  // namespace motley
