// FileCopies: second copies of a machine's files of each checkpoint, on other machines, while the
// run trains. What the machine's ranks have written goes to the keepers that the launcher chose,
// and theirs come here, by the ranks' connections and in what the links have left.
//
// Who sends and who receives goes by the launcher's words alone: all keepers are told the same of
// the same saves in the same order, so both ends know which file is next.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/ids.h"
#include "base/work_counter.h"
#include "comm/frames/frame_link.h"
#include "protocol/launcher_channel.h"
#include "protocol/protocol.h"
#include "protocol/store_message.h"

namespace motley {

// What another rank may send of files before this one asks for it.
[[nodiscard]] std::uint64_t early_copy_bytes(const Job& job);

class FileCopies {
 public:
  // All that is given must outlive it, but for `link`.
  FileCopies(const Job& job,
             const FrameLink& link,
             const Patience& patience,
             LauncherChannel& launcher,
             WorkCounter& work);
  // Gives up what is under way.
  ~FileCopies();
  FileCopies(const FileCopies&) = delete;
  FileCopies& operator=(const FileCopies&) = delete;

  // The files of a save that is committed go and come, after those of the ones before. Returns at
  // once. The launcher hears ("copied") when all that were to go have arrived, and what could not
  // be copied ("copy_failed").
  void add(const KeepOrder& order);

  // Waits until nothing is left to do. Each wait within ends with the patience.
  void finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace motley
