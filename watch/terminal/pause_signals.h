// PauseSignals: while it exists, ^Z (SIGTSTP) does not stop this process but arrives on a
// descriptor, so that the terminal can be restored first; SIGCONT arrives there too. The destructor
// restores the previous signal mask. REQUIRES: constructed and destroyed on one thread, while the
// process has no other thread that leaves these signals unblocked.
#pragma once

#include <signal.h>

#include <optional>

#include "base/system/owned_fd.h"

namespace motley {

enum class PauseSignal { kPause, kRestart };

class PauseSignals {
 public:
  PauseSignals();
  ~PauseSignals();
  PauseSignals(const PauseSignals&) = delete;
  PauseSignals& operator=(const PauseSignals&) = delete;

  // Readable when a signal is pending.
  [[nodiscard]] int fd() const { return fd_.get(); }

  // The next pending signal.
  [[nodiscard]] std::optional<PauseSignal> take();

  // Stops this process as ^Z does by default; returns after SIGCONT.
  void pause();

 private:
  OwnedFd fd_;
  sigset_t mask_before_;
};

}  // namespace motley
