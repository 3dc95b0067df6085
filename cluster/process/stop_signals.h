// StopSignals: while it lives, SIGINT and SIGTERM arrive as bytes on a descriptor instead of ending
// the process, and SIGPIPE is ignored, so that writing to a dead worker is an error like any other.
// Restores what was before. REQUIRES: made and destroyed on one thread, while the process has no
// other thread that leaves SIGINT and SIGTERM unblocked.
#pragma once

#include <signal.h>

#include <optional>

#include "base/result.h"
#include "base/system/owned_fd.h"

namespace motley {

// First in main: SIGHUP ends this process again, or is ignored where the person asked for that
// (nohup), although UCX has taken it when it was loaded.
void take_back_hangup();

class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // Readable when a signal has arrived.
  [[nodiscard]] int fd() const { return fd_.get(); }

  // The next signal that has arrived, as the error a run ends with: kInterrupted, or kTerminated
  // for SIGTERM and SIGHUP.
  [[nodiscard]] std::optional<Error> take();

 private:
  OwnedFd fd_;
  sigset_t mask_before_;
  struct sigaction pipe_before_;
};

}  // namespace motley
