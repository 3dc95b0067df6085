#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/process/process_wait.h"

namespace motley {

Result<OwnedFd> open_exit_fd(pid_t pid) {
  // By system call number: glibc 2.36 declares pidfd_open without C linkage. A pidfd is always
  // close-on-exec.
  OwnedFd fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!fd.open()) {
    return Error{ErrorCode::kInternal, "cannot watch a started process", std::strerror(errno),
                 "Motley needs Linux 5.3 or newer"};
  }
  return fd;
}

void close_all_but_standard(posix_spawn_file_actions_t* actions) {
  posix_spawn_file_actions_addclosefrom_np(actions, STDERR_FILENO + 1);
}

}  // namespace motley
