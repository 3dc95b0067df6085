// FolderReplicator: the replicator of a machine-local run folder during training, on one of the
// ranks that write into it.
//
// According to the launcher's messages it turns the files of all the folder's ranks into shards of
// checkpoints, removes old ones, and copies files to and from other machines (file_copies.h). It
// has its own threads, because disks may be slow and the training continues.
#pragma once

#include <cstdint>
#include <memory>

#include "base/clock.h"
#include "base/progress_counter.h"
#include "base/result.h"
#include "comm/frames/frame_link.h"
#include "protocol/launcher_channel.h"
#include "protocol/protocol.h"

namespace motley {

class FolderReplicator {
 public:
  // Acquires the folder for the launch unless it is the launcher's. Arguments must outlive it.
  // kPeer if another launch is active there. REQUIRES: job.replicator is set.
  [[nodiscard]] static Result<std::unique_ptr<FolderReplicator>> open(const Job& job,
                                                                      LauncherChannel& launcher,
                                                                      ProgressCounter& work);
  ~FolderReplicator();
  FolderReplicator(const FolderReplicator&) = delete;
  FolderReplicator& operator=(const FolderReplicator&) = delete;

  // Reports to the launcher that this rank is the folder's replicator, and handles the outcomes of
  // saves from then on. `stall_timeout`: for transfers with other replicators. REQUIRES: the
  // launcher's addresses have arrived, and `link` is connected.
  void start(const FrameLink& link, const StallTimeout& stall_timeout);

  // Waits until the outcome of the save of this step (0 = there was none) has arrived and been
  // handled, and until its copies have succeeded or failed. kPeer after a stall timeout without
  // progress.
  [[nodiscard]] Result<void> finish(std::int64_t last_saved_step);

 private:
  struct Impl;
  explicit FolderReplicator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace motley
