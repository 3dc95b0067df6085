// The verb "store": a worker's work on its machine's run folder while no training runs.
#pragma once

#include "base/progress_counter.h"
#include "base/result.h"
#include "protocol/launcher_channel.h"
#include "protocol/protocol.h"

namespace motley {

// options.look: reports the folder's contents ("store" events). options.move: collects the files of
// a checkpoint that the machine needs, from its own folder and from the other workers'.
// options.prune: removes from the launch's folder all checkpoints except those of these steps.
// kCorrupt for an invalid order and for damaged files, kPeer if a worker is lost, or if another
// launcher has acquired the folder during the transfer.
[[nodiscard]] Result<void> run_store_job(const Job& job,
                                         LauncherChannel& launcher,
                                         ProgressCounter& work);

}  // namespace motley
