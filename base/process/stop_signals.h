// StopSignals: during its lifetime SIGINT, SIGTERM and, unless it is ignored, SIGHUP are readable
// on a descriptor instead of ending the process. SIGPIPE is ignored, so that writing to a dead
// worker is an ordinary error. The destructor restores the previous state. REQUIRES: constructed
// and destroyed on one thread, while no other thread of the process leaves these signals unblocked.
#pragma once

#include <signal.h>

#include <optional>

#include "base/result.h"
#include "base/system/owned_fd.h"

namespace motley {

// To be called first in main. Restores SIGHUP's disposition from before UCX was loaded, which
// replaces it: default, or ignored (nohup).
void restore_hangup_default();

class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // Readable once a signal has arrived.
  [[nodiscard]] int fd() const { return fd_.get(); }

  // The next signal that has arrived, as the error that a run ends with: kInterrupted, or
  // kTerminated for SIGTERM and SIGHUP.
  [[nodiscard]] std::optional<Error> take();

 private:
  OwnedFd fd_;
  sigset_t mask_before_;
  struct sigaction pipe_before_;
};

}  // namespace motley
