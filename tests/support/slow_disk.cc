// Preloaded into a worker (LD_PRELOAD): makes the disk with its shards slow or failing.
//   MOTLEY_SLOW_S   seconds that each write to a *.safetensors file and each sync of one take
//   MOTLEY_READ_S   seconds that each read of one takes
//   MOTLEY_FAILS    set: such a write fails with EIO
//   MOTLEY_FULL_WHILE  a path: while it exists, such a write takes half of the bytes, and then none
#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>

namespace {

bool is_shard(int fd) {
  char path[4096];
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t length = ::readlink(link.c_str(), path, sizeof path);
  return length > 0 &&
         std::string_view(path, static_cast<std::size_t>(length)).ends_with(".safetensors");
}

void dawdle(const char* variable = "MOTLEY_SLOW_S") {
  const char* const seconds = std::getenv(variable);
  if (seconds == nullptr) return;
  std::this_thread::sleep_for(std::chrono::duration<double>(std::atof(seconds)));
}

template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" ssize_t write(int fd, const void* bytes, std::size_t count) {
  if (is_shard(fd)) {
    dawdle();
    if (std::getenv("MOTLEY_FAILS") != nullptr) {
      errno = EIO;
      return -1;
    }
  }
  static auto* const next = real<ssize_t(int, const void*, std::size_t)>("write");
  const char* const full_while = std::getenv("MOTLEY_FULL_WHILE");
  if (full_while != nullptr && is_shard(fd) && ::access(full_while, F_OK) == 0) {
    if (count > 1) return next(fd, bytes, count / 2);
    errno = ENOSPC;
    return -1;
  }
  return next(fd, bytes, count);
}

extern "C" ssize_t pread(int fd, void* bytes, std::size_t count, off_t offset) {
  if (is_shard(fd)) dawdle("MOTLEY_READ_S");
  static auto* const next = real<ssize_t(int, void*, std::size_t, off_t)>("pread");
  return next(fd, bytes, count, offset);
}

extern "C" int fdatasync(int fd) {
  if (is_shard(fd)) dawdle();
  static auto* const next = real<int(int)>("fdatasync");
  return next(fd);
}

extern "C" int fsync(int fd) {
  if (is_shard(fd)) dawdle();
  static auto* const next = real<int(int)>("fsync");
  return next(fd);
}
