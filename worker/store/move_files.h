// Brings together what a machine needs of a checkpoint.
#pragma once

#include "base/result.h"
#include "base/work_counter.h"
#include "protocol/launcher_channel.h"
#include "protocol/move_message.h"
#include "protocol/protocol.h"

namespace motley {

// Joins the other workers, sends what they need of job.run_dir and takes what comes, each file
// compared with the manifest. A view is readable, and a part holds the files, when it returns.
// kCorrupt where a file is not whole, at either end; kPeer when a worker is lost.
[[nodiscard]] Result<void> move_files(const Job& job,
                                      const MoveOrder& order,
                                      LauncherChannel& launcher,
                                      WorkCounter& work);

}  // namespace motley
