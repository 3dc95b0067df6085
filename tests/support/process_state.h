// The state of a process that may not be a child of this one.
#pragma once

#include <poll.h>
#include <signal.h>
#include <sys/types.h>

#include "base/process/process_wait.h"

namespace motley {

// Whether it exists, including as a zombie.
inline bool runs(pid_t pid) {
  return ::kill(pid, 0) == 0;
}

// Whether a process that was sent SIGKILL ends; this takes a moment.
inline bool ends(pid_t pid) {
  const Result<OwnedFd> exit = open_exit_fd(pid);
  if (!exit) return true;  // it has ended and was reaped
  pollfd ended{.fd = exit->get(), .events = POLLIN};
  return ::poll(&ended, 1, 10'000) == 1;
}

}  // namespace motley
