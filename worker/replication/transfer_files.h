// Collects the files of a checkpoint that a machine needs.
#pragma once

#include "base/progress_counter.h"
#include "base/result.h"
#include "protocol/launcher_channel.h"
#include "protocol/protocol.h"
#include "protocol/transfer_message.h"

namespace motley {

// Joins the other workers, sends the files of job.run_dir that they need and receives its own, each
// verified against the manifest. On return the view is readable, or the machine's folder holds the
// files. kCorrupt if a file is damaged at either end; kPeer if a worker is lost.
[[nodiscard]] Result<void> transfer_files(const Job& job,
                                          const TransferOrder& order,
                                          LauncherChannel& launcher,
                                          ProgressCounter& work);

}  // namespace motley
