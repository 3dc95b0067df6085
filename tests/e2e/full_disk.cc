// Preloaded into one worker, it makes the disk full for that worker alone: while the file that
// MOTLEY_TEST_FULL_DISK names exists, a write into a checkpoint that is not whole yet takes half of
// the bytes and then fails.
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>

namespace {

bool is_in_checkpoint(int fd) {
  char target[4096];
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t length = ::readlink(link.c_str(), target, sizeof target);
  if (length <= 0) return false;
  return std::string(target, static_cast<std::size_t>(length)).find(".partial/") !=
         std::string::npos;
}

bool is_full() {
  const char* flag = std::getenv("MOTLEY_TEST_FULL_DISK");
  return flag != nullptr && ::access(flag, F_OK) == 0;
}

}  // namespace

extern "C" ssize_t write(int fd, const void* bytes, size_t count) {
  if (is_full() && is_in_checkpoint(fd)) {
    if (count > 1) return ::syscall(SYS_write, fd, bytes, count / 2);
    errno = ENOSPC;
    return -1;
  }
  return ::syscall(SYS_write, fd, bytes, count);
}
