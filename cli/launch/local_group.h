// The processes that a launcher has started on one machine. One of them joins, with all devices of
// the machine; the others wait for it and end with its status. They meet at a Unix socket in the
// abstract namespace; both ends check that the other belongs to the same user.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "base/system/owned_fd.h"

namespace motley {

class LocalGroup {
 public:
  // For the process that joins. `others`: how many wait for it. kPeer if another process already
  // joins for the same group.
  [[nodiscard]] static Result<LocalGroup> lead(std::string_view group, int others);

  // Tells the others the status. Waits for at most kLate_s for those that have not asked yet.
  void end(int status);

 private:
  static constexpr double kLate_s = 5;

  LocalGroup(OwnedFd listener, int others) : listener_(std::move(listener)), others_(others) {}

  OwnedFd listener_;
  int others_;
};

// For the other processes: the status with which the one that joins has ended. Waits for it for at
// most `wait_s`. After SIGINT or SIGTERM it goes on waiting, since the other process has got the
// signal too; a second one ends it. kPeer if the process never comes or was lost; kInterrupted and
// kTerminated.
[[nodiscard]] Result<int> follow_group(std::string_view group, double wait_s);

}  // namespace motley
