#include <sys/pidfd.h>

#include <cerrno>
#include <cstring>

#include "cluster/process_wait.h"

namespace motley {

Result<OwnedFd> open_exit_fd(pid_t pid) {
  OwnedFd fd(::pidfd_open(pid, 0));  // close-on-exec by definition
  if (!fd.open()) {
    return Error{ErrorCode::kInternal, "cannot watch a started process", std::strerror(errno),
                 "Motley needs Linux 5.3 or newer"};
  }
  return fd;
}

}  // namespace motley
