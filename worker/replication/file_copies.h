// FileCopies: replicates a machine's files of each checkpoint on other machines during training.
// Files written by the machine's ranks are sent to the replicators that the launcher chose, and
// files of others are received here, over the ranks' connections in their spare bandwidth.
//
// Only the launcher's messages determine the transfers: all replicators get the same messages about
// the same saves in the same order, so both ends know the next file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/ids.h"
#include "base/progress_counter.h"
#include "comm/frames/frame_link.h"
#include "protocol/launcher_channel.h"
#include "protocol/protocol.h"
#include "protocol/store_message.h"

namespace motley {

// The bytes of files that other ranks may send before this one posts a receive.
[[nodiscard]] std::uint64_t unexpected_copy_bytes(const Job& job);

class FileCopies {
 public:
  // All arguments except `link` must outlive it.
  FileCopies(const Job& job,
             const FrameLink& link,
             const StallTimeout& stall_timeout,
             LauncherChannel& launcher,
             ProgressCounter& work);
  // Cancels running transfers.
  ~FileCopies();
  FileCopies(const FileCopies&) = delete;
  FileCopies& operator=(const FileCopies&) = delete;

  // Sends and receives the files of a committed save, after those of earlier ones. Returns at once.
  // The launcher gets a "copied" event when all outgoing files have arrived, and a "copy_failed"
  // event for files that could not be copied.
  void add(const ReplicationOrder& order);

  // Waits until all transfers are done. Each wait inside is limited by the stall timeout.
  void finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace motley
