#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/check.h"
#include "base/process/stop_signals.h"

namespace motley {
namespace {

bool is_hangup_ignored() {
  struct sigaction now {};

  return ::sigaction(SIGHUP, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

// UCX installs its own SIGHUP handler when it is loaded, which is before main. Whether SIGHUP was
// ignored (nohup) must be read before that, when neither the C library nor a sanitizer is ready:
// hence the bare system call, whose result begins with the handler.
bool was_hangup_ignored = false;

[[gnu::no_sanitize("address", "thread", "undefined")]] void see_hangup(int, char**, char**) {
  unsigned long action[8];
  constexpr unsigned long kMaskBytes = 8;
  was_hangup_ignored = ::syscall(SYS_rt_sigaction, SIGHUP, nullptr, action, kMaskBytes) == 0 &&
                       action[0] == reinterpret_cast<unsigned long>(SIG_IGN);
}

using Early = void (*)(int, char**, char**);
[[gnu::section(".preinit_array"), gnu::used]] const Early kSeeHangupFirst = see_hangup;

}  // namespace

void restore_hangup_default() {
  std::signal(SIGHUP, was_hangup_ignored ? SIG_IGN : SIG_DFL);
}

StopSignals::StopSignals() {
  sigset_t stops;
  sigemptyset(&stops);
  sigaddset(&stops, SIGINT);
  sigaddset(&stops, SIGTERM);
  if (!is_hangup_ignored()) sigaddset(&stops, SIGHUP);
  MOTLEY_CHECK(pthread_sigmask(SIG_BLOCK, &stops, &mask_before_) == 0, "cannot block signals");
  fd_ = OwnedFd(signalfd(-1, &stops, SFD_CLOEXEC | SFD_NONBLOCK));
  MOTLEY_CHECK(fd_.open(), "signalfd failed, errno {}", errno);

  struct sigaction ignore {};

  ignore.sa_handler = SIG_IGN;
  MOTLEY_CHECK(sigaction(SIGPIPE, &ignore, &pipe_before_) == 0, "errno {}", errno);
}

StopSignals::~StopSignals() {
  // A pending second Ctrl-C must not end the process as soon as it is unblocked.
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
  if (info.ssi_signo == SIGHUP) {
    return Error{ErrorCode::kTerminated, "ended by SIGHUP", "its terminal was closed",
                 "use nohup or tmux to keep a run without its terminal"};
  }
  return Error{ErrorCode::kTerminated, "ended by SIGTERM", "", ""};
}

}  // namespace motley
