// The verb "store": what a worker does with its machine's folder of a run while nothing trains.
#pragma once

#include "base/result.h"
#include "base/work_counter.h"
#include "protocol/launcher_channel.h"
#include "protocol/protocol.h"

namespace motley {

// options.look: tells what the folder holds ("store" events). options.move: brings together what
// the machine needs of a checkpoint, from its own folder and from the other workers'.
// options.prune: removes from the launch's folder all checkpoints but those of these steps.
// kCorrupt for an order that is none and for files that are not whole, kPeer when a worker is lost,
// or another launcher has come to the folder while files were moved.
[[nodiscard]] Result<void> run_store_job(const Job& job,
                                         LauncherChannel& launcher,
                                         WorkCounter& work);

}  // namespace motley
