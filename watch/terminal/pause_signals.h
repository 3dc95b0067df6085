// PauseSignals: while it lives, ^Z (SIGTSTP) does not stop this process but arrives on a
// descriptor, so that the terminal can be given back first; SIGCONT arrives there too. Restores
// what was before. REQUIRES: made and destroyed on one thread, while the process has no other
// thread that leaves these signals unblocked.
#pragma once

#include <signal.h>

#include <optional>

#include "base/system/owned_fd.h"

namespace motley {

enum class PauseSignal { kPause, kGoOn };

class PauseSignals {
 public:
  PauseSignals();
  ~PauseSignals();
  PauseSignals(const PauseSignals&) = delete;
  PauseSignals& operator=(const PauseSignals&) = delete;

  // Readable when a signal has arrived.
  [[nodiscard]] int fd() const { return fd_.get(); }

  // The next signal that has arrived.
  [[nodiscard]] std::optional<PauseSignal> take();

  // Stops this process as ^Z would have done, and returns when it goes on.
  void pause();

 private:
  OwnedFd fd_;
  sigset_t mask_before_;
};

}  // namespace motley
