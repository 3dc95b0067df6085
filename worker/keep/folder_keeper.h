// FolderKeeper: the replicator of a machine-local run folder during training, on one of the ranks
// that write into it.
//
// According to the launcher's messages it turns the files of all the folder's ranks into shards of
// checkpoints, removes old ones, and copies files to and from other machines (file_copies.h). It
// has its own threads, because disks may be slow and the training continues.
#pragma once

#include <cstdint>
#include <memory>

#include "base/clock.h"
#include "base/result.h"
#include "base/work_counter.h"
#include "comm/frames/frame_link.h"
#include "protocol/launcher_channel.h"
#include "protocol/protocol.h"

namespace motley {

class FolderKeeper {
 public:
  // Acquires the folder for the launch unless it is the launcher's. Arguments must outlive it.
  // kPeer if another launch is active there. REQUIRES: job.keeper is set.
  [[nodiscard]] static Result<std::unique_ptr<FolderKeeper>> open(const Job& job,
                                                                  LauncherChannel& launcher,
                                                                  WorkCounter& work);
  ~FolderKeeper();
  FolderKeeper(const FolderKeeper&) = delete;
  FolderKeeper& operator=(const FolderKeeper&) = delete;

  // Reports to the launcher that this rank is the folder's replicator, and handles the outcomes of
  // saves from then on. `patience`: for transfers with other replicators. REQUIRES: the launcher's
  // addresses have arrived, and `link` is connected.
  void start(const FrameLink& link, const Patience& patience);

  // Waits until the outcome of the save of this step (0 = there was none) has arrived and been
  // handled, and until its copies have succeeded or failed. kPeer after a stall timeout without
  // progress.
  [[nodiscard]] Result<void> finish(std::int64_t last_saved_step);

 private:
  struct Impl;
  explicit FolderKeeper(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace motley
