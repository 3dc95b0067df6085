// StopSignals: while it lives, SIGINT and SIGTERM arrive as bytes on a descriptor instead of ending
// the process, and SIGPIPE is ignored, so that writing to a dead worker is an error like any other.
// Restores what was before. REQUIRES: made and destroyed on one thread, while the process has no
// other thread that leaves SIGINT and SIGTERM unblocked.
#pragma once

#include <signal.h>

#include <optional>

#include "base/result.h"
#include "cluster/process/owned_fd.h"

namespace motley {

class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // Readable when a signal has arrived.
  [[nodiscard]] int fd() const { return fd_.get(); }

  // The next signal that has arrived, as the error a run ends with: kInterrupted or kTerminated.
  [[nodiscard]] std::optional<Error> take();

 private:
  OwnedFd fd_;
  sigset_t mask_before_;
  struct sigaction pipe_before_;
};

}  // namespace motley
