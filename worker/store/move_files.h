// Collects the files of a checkpoint that a machine needs.
#pragma once

#include "base/result.h"
#include "base/work_counter.h"
#include "protocol/launcher_channel.h"
#include "protocol/move_message.h"
#include "protocol/protocol.h"

namespace motley {

// Joins the other workers, sends the files of job.run_dir that they need and receives its own, each
// verified against the manifest. On return the view is readable, or the machine's folder holds the
// files. kCorrupt if a file is damaged at either end; kPeer if a worker is lost.
[[nodiscard]] Result<void> move_files(const Job& job,
                                      const MoveOrder& order,
                                      LauncherChannel& launcher,
                                      WorkCounter& work);

}  // namespace motley
