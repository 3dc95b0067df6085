// BlockedSignals: while it exists, all signals are blocked in the calling thread and in threads
// that it starts. Signals then go to the threads that handle them.
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
