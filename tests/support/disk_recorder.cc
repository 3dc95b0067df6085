// Linked into a test or preloaded into programs (LD_PRELOAD): records their operations on a
// folder, in one order over all threads and processes.
//   MOTLEY_DISK_ROOT  the folder, as an absolute path without links
//   MOTLEY_DISK_LOG   a file outside of it, where records are appended (disk_log.h)
//
// Nothing is synced to the real disk, which would only cost time: disk_model.h derives what a disk
// would have retained from the log.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "tests/support/disk_log.h"

namespace {

using motley::testing::DiskAction;
using motley::testing::DiskOperation;

std::string link_target(const std::string& link) {
  char path[4096];
  const ssize_t length = ::readlink(link.c_str(), path, sizeof path);
  return {path, length > 0 ? static_cast<std::size_t>(length) : 0};
}

// The path relative to the folder; nullopt if it is outside, or if nothing is recorded.
std::optional<std::string> within(const std::string& path) {
  const char* const root = std::getenv("MOTLEY_DISK_ROOT");
  if (root == nullptr) return {};
  std::string plain = std::filesystem::path(path).lexically_normal().string();
  if (plain.ends_with('/')) plain.pop_back();
  if (plain == root) return "";
  const std::string prefix = std::string(root) + "/";
  if (!plain.starts_with(prefix)) return {};
  return plain.substr(prefix.size());
}

std::optional<std::string> within(int folder, const char* path) {
  if (path[0] == '/') return within(std::string(path));
  const std::string base = link_target(
      folder == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/" + std::to_string(folder));
  return within(base + "/" + path);
}

// Also nullopt for a file that has been unlinked.
std::optional<std::string> within(int fd) {
  if (std::getenv("MOTLEY_DISK_ROOT") == nullptr) return {};
  const std::string path = link_target("/proc/self/fd/" + std::to_string(fd));
  return path.ends_with(" (deleted)") ? std::nullopt : within(path);
}

// A lock held during an operation and the write of its record, so that records are in execution
// order.
class Turn {
 public:
  Turn() : lock_(mutex()) { ::flock(log(), LOCK_EX); }

  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  ~Turn() { ::flock(log(), LOCK_UN); }

  static void note(const DiskOperation& operation) {
    const std::string record = motley::testing::format_record(operation);
    const ssize_t written = ::syscall(SYS_write, log(), record.data(), record.size());
    if (written != static_cast<ssize_t>(record.size())) std::abort();
  }

 private:
  static std::mutex& mutex() {
    static std::mutex mutex;
    return mutex;
  }

  static int log() {
    static const int fd =
        static_cast<int>(::syscall(SYS_openat, AT_FDCWD, std::getenv("MOTLEY_DISK_LOG"),
                                   O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    return fd;
  }

  std::unique_lock<std::mutex> lock_;
};

// Executes the operation, and records it if it succeeded.
long recorded(const std::optional<std::string>& path,
              DiskOperation operation,
              const std::function<long()>& act) {
  if (!path) return act();
  const Turn turn;
  const long status = act();
  if (status < 0) return status;
  operation.path = *path;
  Turn::note(operation);
  return status;
}

// syscall() returns -1 and sets errno, as the C library's own functions do.
int open_recorded(int folder, const char* path, int flags, mode_t mode) {
  const auto act = [&] {
    return static_cast<int>(::syscall(SYS_openat, folder, path, flags, mode));
  };
  const auto place = (flags & (O_CREAT | O_TRUNC)) != 0 ? within(folder, path) : std::nullopt;
  if (!place) return act();
  const Turn turn;

  struct stat info {};

  const bool is_there = ::fstatat(folder, path, &info, AT_SYMLINK_NOFOLLOW) == 0;
  const int fd = act();
  if (fd < 0) return fd;
  if (!is_there) Turn::note({DiskAction::kMakeFile, *place});
  if (is_there && (flags & O_TRUNC) != 0) Turn::note({DiskAction::kResize, *place});
  return fd;
}

ssize_t write_recorded(int fd, const void* bytes, std::size_t count, std::optional<off_t> offset) {
  const auto act = [&] {
    return offset ? ::syscall(SYS_pwrite64, fd, bytes, count, *offset)
                  : ::syscall(SYS_write, fd, bytes, count);
  };
  const auto place = within(fd);
  if (!place) return act();
  const Turn turn;

  struct stat info {};

  ::fstat(fd, &info);
  const bool appends = (::fcntl(fd, F_GETFL) & O_APPEND) != 0;
  const off_t begin = appends ? info.st_size : offset ? *offset : ::lseek(fd, 0, SEEK_CUR);
  const ssize_t written = act();
  if (written > 0) {
    Turn::note({.action = DiskAction::kWrite,
                .path = *place,
                .offset = static_cast<std::uint64_t>(begin),
                .bytes = {static_cast<const char*>(bytes), static_cast<std::size_t>(written)}});
  }
  return written;
}

mode_t mode_of(int flags, va_list rest) {
  return (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_of(flags, rest);
  va_end(rest);
  return open_recorded(AT_FDCWD, path, flags, mode);
}

int openat(int folder, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_of(flags, rest);
  va_end(rest);
  return open_recorded(folder, path, flags, mode);
}

ssize_t write(int fd, const void* bytes, std::size_t count) {
  return write_recorded(fd, bytes, count, {});
}

ssize_t pwrite(int fd, const void* bytes, std::size_t count, off_t offset) {
  return write_recorded(fd, bytes, count, offset);
}

int ftruncate(int fd, off_t bytes) noexcept {
  return static_cast<int>(recorded(
      within(fd),
      {.action = DiskAction::kResize, .path = {}, .offset = static_cast<std::uint64_t>(bytes)},
      [&] { return ::syscall(SYS_ftruncate, fd, bytes); }));
}

int fsync(int fd) {
  return static_cast<int>(recorded(within(fd), {DiskAction::kSync, {}}, [] { return 0L; }));
}

int fdatasync(int fd) {
  return fsync(fd);
}

int rename(const char* from, const char* to) noexcept {
  return static_cast<int>(
      recorded(within(AT_FDCWD, from), {DiskAction::kRename, {}, within(AT_FDCWD, to).value_or("")},
               [&] { return ::syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to); }));
}

int linkat(int folder, const char* from, int other, const char* to, int flags) noexcept {
  return static_cast<int>(
      recorded(within(folder, from), {DiskAction::kLink, {}, within(other, to).value_or("")},
               [&] { return ::syscall(SYS_linkat, folder, from, other, to, flags); }));
}

int link(const char* from, const char* to) noexcept {
  return linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
}

int mkdir(const char* path, mode_t mode) noexcept {
  return static_cast<int>(recorded(within(AT_FDCWD, path), {DiskAction::kMakeFolder, {}},
                                   [&] { return ::syscall(SYS_mkdirat, AT_FDCWD, path, mode); }));
}

int unlinkat(int folder, const char* path, int flags) noexcept {
  return static_cast<int>(recorded(within(folder, path), {DiskAction::kRemove, {}},
                                   [&] { return ::syscall(SYS_unlinkat, folder, path, flags); }));
}

int unlink(const char* path) noexcept {
  return unlinkat(AT_FDCWD, path, 0);
}

int rmdir(const char* path) noexcept {
  return unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

int remove(const char* path) noexcept {
  const int status = unlink(path);
  return status != 0 && errno == EISDIR ? rmdir(path) : status;
}

}  // extern "C"
