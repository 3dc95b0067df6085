#include <sys/signalfd.h>

#include <cerrno>

#include "base/check.h"
#include "cluster/process/stop_signals.h"

namespace motley {

StopSignals::StopSignals() {
  sigset_t stops;
  sigemptyset(&stops);
  sigaddset(&stops, SIGINT);
  sigaddset(&stops, SIGTERM);
  MOTLEY_CHECK(pthread_sigmask(SIG_BLOCK, &stops, &mask_before_) == 0, "cannot block signals");
  fd_ = OwnedFd(signalfd(-1, &stops, SFD_CLOEXEC | SFD_NONBLOCK));
  MOTLEY_CHECK(fd_.open(), "signalfd failed, errno {}", errno);

  struct sigaction ignore {};

  ignore.sa_handler = SIG_IGN;
  MOTLEY_CHECK(sigaction(SIGPIPE, &ignore, &pipe_before_) == 0, "errno {}", errno);
}

StopSignals::~StopSignals() {
  // A second Ctrl-C of an impatient person must not end the process the moment it is unblocked.
  while (take()) {
  }
  sigaction(SIGPIPE, &pipe_before_, nullptr);
  pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

std::optional<Error> StopSignals::take() {
  signalfd_siginfo info{};
  if (::read(fd_.get(), &info, sizeof(info)) != static_cast<ssize_t>(sizeof(info))) {
    return std::nullopt;
  }
  if (info.ssi_signo == SIGINT) return Error{ErrorCode::kInterrupted, "interrupted", "", ""};
  return Error{ErrorCode::kTerminated, "ended by SIGTERM", "", ""};
}

}  // namespace motley
