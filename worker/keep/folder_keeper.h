// FolderKeeper: the one rank of those that write into a machine's run folder that looks after it
// while the run trains, where machines have folders of their own.
//
// It makes parts of checkpoints of what all of the folder's ranks have written, as the launcher
// says, removes old ones, and sees to the copies on other machines (file_copies.h). On threads of
// its own, since disks may be slow and the training goes on.
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
  // Takes the folder for the launch where it is not the launcher's. What is given must outlive it.
  // kPeer when another launch is at work there. REQUIRES: job.keeper is set.
  [[nodiscard]] static Result<std::unique_ptr<FolderKeeper>> open(const Job& job,
                                                                  LauncherChannel& launcher,
                                                                  WorkCounter& work);
  ~FolderKeeper();
  FolderKeeper(const FolderKeeper&) = delete;
  FolderKeeper& operator=(const FolderKeeper&) = delete;

  // Tells the launcher that this rank keeps the folder, and from now on hears what becomes of
  // saves. `patience`: of copies, with other keepers. REQUIRES: the launcher's addresses have come,
  // and `link` is connected.
  void start(const FrameLink& link, const Patience& patience);

  // Waits until it has been told what became of the save of this step (0 = none was made), has done
  // it, and the copies are where they belong or cannot be. kPeer when nobody gets on for so long.
  [[nodiscard]] Result<void> finish(std::int64_t last_saved_step);

 private:
  struct Impl;
  explicit FolderKeeper(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace motley
