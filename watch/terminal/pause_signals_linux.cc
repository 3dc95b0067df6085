#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>

#include "base/check.h"
#include "watch/terminal/pause_signals.h"

namespace motley {

PauseSignals::PauseSignals() {
  sigset_t pauses;
  sigemptyset(&pauses);
  sigaddset(&pauses, SIGTSTP);
  sigaddset(&pauses, SIGCONT);
  MOTLEY_CHECK(pthread_sigmask(SIG_BLOCK, &pauses, &mask_before_) == 0, "cannot block signals");
  fd_ = OwnedFd(signalfd(-1, &pauses, SFD_CLOEXEC | SFD_NONBLOCK));
  MOTLEY_CHECK(fd_.open(), "signalfd failed, errno {}", errno);
}

PauseSignals::~PauseSignals() {
  pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

std::optional<PauseSignal> PauseSignals::take() {
  signalfd_siginfo info{};
  if (::read(fd_.get(), &info, sizeof(info)) != static_cast<ssize_t>(sizeof(info))) return {};
  return info.ssi_signo == SIGTSTP ? PauseSignal::kPause : PauseSignal::kRestart;
}

// Unblocked, the signal has its default effect, so the shell reports the stop as usual.
void PauseSignals::pause() {
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTSTP);
  ::raise(SIGTSTP);
  pthread_sigmask(SIG_UNBLOCK, &stop, nullptr);
  pthread_sigmask(SIG_BLOCK, &stop, nullptr);
}

}  // namespace motley
