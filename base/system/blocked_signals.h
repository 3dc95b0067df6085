// BlockedSignals: while it exists, the calling thread gets no signals, and so neither do threads
// that it starts: they are for the threads that look for them.
#pragma once

#include <pthread.h>

#include <csignal>

namespace motley {

class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }

  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace motley
