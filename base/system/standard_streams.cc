#include "base/system/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <initializer_list>

namespace motley {

void open_standard_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    // open() returns the lowest free number, which is this one, as those below are open.
    [[maybe_unused]] const int opened = ::open("/dev/null", O_RDWR);
  }
}

void ignore_file_size_limit() {
  std::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace motley
