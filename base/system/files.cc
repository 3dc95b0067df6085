#include "base/system/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#ifdef __linux__
#include <sys/vfs.h>
#endif
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace motley {
namespace {

constexpr std::size_t kWriteBytes = std::size_t{1} << 20;  // per write call
constexpr std::size_t kPieceBytesMin = std::size_t{64} << 10;
constexpr std::size_t kPieceBytesMax = std::size_t{64} << 20;
constexpr double kShortSync_s = 0.2;
constexpr double kLongSync_s = 1;

Error not_a_file(const char* verb, const std::filesystem::path& path) {
  return {ErrorCode::kCorrupt, fmt::format("cannot {} {}", verb, path.string()),
          "it is a pipe or a socket, not a file", "give the path of a file, or move it away"};
}

Error not_a_regular_file(const char* verb, const std::filesystem::path& path) {
  return {ErrorCode::kCorrupt, fmt::format("cannot {} {}", verb, path.string()),
          "it is not a regular file", "remove it"};
}

const char* verb_of(int flags) {
  return (flags & O_ACCMODE) == O_RDONLY ? "read" : "write";
}

std::filesystem::path temporary_of(std::filesystem::path path) {
  path += ".tmp";
  return path;
}

Result<std::string> read_all(const OwnedFd& fd,
                             const std::filesystem::path& path,
                             std::uint64_t max_bytes) {
  std::string text;
  char block[1 << 16];
  for (;;) {
    const ssize_t count = ::read(fd.get(), block, sizeof block);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return file_error("read", path, errno);
    if (count == 0) return text;
    text.append(block, static_cast<std::size_t>(count));
    if (text.size() > max_bytes) {
      return Error{ErrorCode::kCorrupt, fmt::format("cannot read {}", path.string()),
                   fmt::format("it is larger than {} bytes", max_bytes), "check the path"};
    }
  }
}

}  // namespace

Error file_error(const std::string& verb, const std::filesystem::path& path, int errno_value) {
  std::string remedy;
  if (errno_value == ENOSPC || errno_value == EDQUOT) {
    remedy = fmt::format("free space on the disk that holds {}", path.parent_path().string());
  } else if (errno_value == ENOENT) {
    remedy = "check the path";
  } else if (errno_value == EACCES || errno_value == EROFS) {
    remedy = "check the permissions of the file and its folder";
  } else if (errno_value == ENOTDIR) {
    remedy = "a file exists where a folder is needed: move it away, or choose another path";
  } else if (errno_value == EISDIR) {
    remedy = "a folder exists where a file is needed: move it away, or choose another path";
  } else if (errno_value == ELOOP) {
    remedy = "symbolic links are not followed: remove the link";
  } else if (errno_value == EFBIG) {
    remedy = "raise the limit of the file size (ulimit -f), or use a file system with larger files";
  } else if (errno_value == EMFILE || errno_value == ENFILE) {
    remedy = "raise the limit of open files (ulimit -n)";
  }
  return {ErrorCode::kCorrupt, fmt::format("cannot {} {}", verb, path.string()),
          std::generic_category().message(errno_value), remedy};
}

Result<OwnedFd> open_file(const std::filesystem::path& path, int flags) {
  // O_NONBLOCK: opening a pipe without a process at its other end would block.
  const char* const verb = verb_of(flags);
  OwnedFd fd(::open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK, 0644));
  if (!fd.open() && errno == ENXIO) return not_a_file(verb, path);
  if (!fd.open()) return file_error(verb, path, errno);

  struct stat info {};

  if (::fstat(fd.get(), &info) != 0) return file_error(verb, path, errno);
  if (S_ISDIR(info.st_mode)) return file_error(verb, path, EISDIR);
  if (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode)) return not_a_file(verb, path);
  return fd;
}

Result<OwnedFd> open_regular_file(const std::filesystem::path& path, int flags) {
  const char* const verb = verb_of(flags);
  OwnedFd fd(::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644));
  // A symbolic link; a socket, or a pipe without a reader; a folder.
  const bool is_another_kind = !fd.open() && (errno == ELOOP || errno == ENXIO || errno == EISDIR);
  if (is_another_kind) return not_a_regular_file(verb, path);
  if (!fd.open()) return file_error(verb, path, errno);

  struct stat info {};

  if (::fstat(fd.get(), &info) != 0) return file_error(verb, path, errno);
  if (!S_ISREG(info.st_mode)) return not_a_regular_file(verb, path);
  return fd;
}

Result<std::string> read_file(const std::filesystem::path& path, std::uint64_t max_bytes) {
  MOTLEY_ASSIGN(const OwnedFd fd, open_file(path, O_RDONLY));
  return read_all(fd, path, max_bytes);
}

Result<std::string> read_input(const std::filesystem::path& path, std::uint64_t max_bytes) {
  const OwnedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.open()) return file_error("read", path, errno);
  return read_all(fd, path, max_bytes);
}

Result<void> replace_file(const std::filesystem::path& path,
                          const std::filesystem::path& temporary,
                          std::string_view text) {
  const auto write_all = [&]() -> Result<void> {
    MOTLEY_ASSIGN(auto file, OutputFile::create(temporary));
    MOTLEY_TRY(file.write(std::as_bytes(std::span(text))));
    return file.close();
  };
  if (auto written = write_all(); !written.ok()) {
    ::unlink(temporary.c_str());
    return written;
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    const int saved = errno;
    ::unlink(temporary.c_str());
    return file_error("write", path, saved);
  }
  return sync_folder(path.has_parent_path() ? path.parent_path() : std::filesystem::path("."));
}

Result<void> write_file_atomic(const std::filesystem::path& path, std::string_view text) {
  return replace_file(path, temporary_of(path), text);
}

Result<void> check_can_write(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return file_error("write", path, EISDIR);
  MOTLEY_ASSIGN([[maybe_unused]] const auto file, OutputFile::create(temporary_of(path)));
  ::unlink(temporary_of(path).c_str());
  return {};
}

Result<bool> path_exists(const std::filesystem::path& path) {
  std::error_code code;
  const bool exists = std::filesystem::exists(path, code);
  if (code) return file_error("access", path, code.value());
  return exists;
}

// Not std::filesystem::space: for a full disk, libc++ returns the largest possible number of bytes.
std::optional<std::uint64_t> free_disk_bytes(const std::filesystem::path& folder) {
  struct statvfs disk {};

  if (::statvfs(folder.c_str(), &disk) != 0 || disk.f_blocks == 0) return std::nullopt;
  return std::uint64_t{disk.f_bavail} * disk.f_frsize;
}

bool is_on_own_disk(const std::filesystem::path& folder) {
#ifdef __linux__
  // From linux/magic.h: ext2 to ext4, XFS, Btrfs, F2FS, ZFS, bcachefs, tmpfs, and overlayfs, whose
  // upper layer must be local.
  constexpr std::array<std::uint32_t, 8> kLocal = {0xEF53,     0x58465342, 0x9123683E, 0xF2F52010,
                                                   0x2FC12FC1, 0xCA451A4E, 0x01021994, 0x794C7630};

  struct statfs disk {};

  return ::statfs(folder.c_str(), &disk) == 0 &&
         std::ranges::find(kLocal, static_cast<std::uint32_t>(disk.f_type)) != kLocal.end();
#else
  (void)folder;
  return false;
#endif
}

Result<void> make_folders(const std::filesystem::path& path) {
  std::error_code code;
  std::filesystem::create_directories(path, code);
  if (!code) return {};
  // If `path` is not a folder, libc++ reports EEXIST and libstdc++ ENOTDIR.
  return file_error("create folder", path, code.value() == EEXIST ? ENOTDIR : code.value());
}

Result<void> make_durable_folders(const std::filesystem::path& path) {
  std::error_code code;
  std::filesystem::path folder = std::filesystem::absolute(path, code).lexically_normal();
  if (code) return file_error("find", path, code.value());
  if (!folder.has_filename()) folder = folder.parent_path();  // the path ended in '/'

  // The parents of the missing folders, the innermost first.
  std::vector<std::filesystem::path> parents;
  while (!std::filesystem::exists(folder, code) && folder.has_relative_path()) {
    folder = folder.parent_path();
    parents.push_back(folder);
  }
  MOTLEY_TRY(make_folders(path));
  for (const std::filesystem::path& parent : parents) MOTLEY_TRY(sync_folder(parent));
  return {};
}

Result<void> sync_folder(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return file_error("open folder", path, errno);
  const int status = ::fsync(fd);
  const int saved = errno;
  ::close(fd);
  // Some file systems cannot sync a folder; they offer no stronger guarantee.
  if (status != 0 && saved != EINVAL) return file_error("sync folder", path, saved);
  return {};
}

OutputFile::OutputFile(int fd, std::filesystem::path path, ProgressCounter* work)
    : fd_(fd), path_(std::move(path)), work_(work) {}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      path_(std::move(other.path_)),
      work_(other.work_),
      unsynced_bytes_(other.unsynced_bytes_) {}

OutputFile::~OutputFile() {
  if (fd_ >= 0) ::close(fd_);
}

Result<OutputFile> OutputFile::create(const std::filesystem::path& path) {
  return create(path, nullptr);
}

Result<OutputFile> OutputFile::create(const std::filesystem::path& path, ProgressCounter* work) {
  return open(path, O_TRUNC, work);
}

Result<OutputFile> OutputFile::create_new(const std::filesystem::path& path,
                                          ProgressCounter* work) {
  return open(path, O_EXCL, work);
}

Result<OutputFile> OutputFile::open(const std::filesystem::path& path,
                                    int flags,
                                    ProgressCounter* work) {
  MOTLEY_ASSIGN(OwnedFd fd, open_file(path, O_WRONLY | O_CREAT | O_NOFOLLOW | flags));
  return OutputFile(fd.release(), path, work);
}

Result<void> OutputFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), std::min(bytes.size(), kWriteBytes));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return file_error("write", path_, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    unsynced_bytes_ += static_cast<std::size_t>(written);
    if (work_ != nullptr) work_->add_bytes(static_cast<std::uint64_t>(written));
    if (unsynced_bytes_ >= piece_bytes_) {
      MOTLEY_TRY(sync());
      // The data is not read again soon. A save of many GB would otherwise evict other programs'
      // pages, and memory that was unused for long is slow to obtain on a virtual machine.
#ifdef POSIX_FADV_DONTNEED
      ::posix_fadvise(fd_, 0, 0, POSIX_FADV_DONTNEED);
#endif
    }
  }
  return {};
}

Result<void> OutputFile::set_bytes(std::uint64_t bytes) {
  if (!std::in_range<off_t>(bytes)) return file_error("write", path_, EFBIG);
  if (::ftruncate(fd_, static_cast<off_t>(bytes)) != 0) return file_error("write", path_, errno);
  return {};
}

Result<void> OutputFile::go_to(std::uint64_t offset) {
  if (!std::in_range<off_t>(offset)) return file_error("write", path_, EFBIG);
  if (::lseek(fd_, static_cast<off_t>(offset), SEEK_SET) < 0) {
    return file_error("write", path_, errno);
  }
  return {};
}

Result<void> OutputFile::sync() {
  const double start_s = now_s();
  if (::fdatasync(fd_) != 0 && errno != EINVAL) return file_error("sync", path_, errno);
  if (work_ != nullptr) work_->add_one();
  unsynced_bytes_ = 0;
  const double took_s = now_s() - start_s;
  if (took_s > kLongSync_s) piece_bytes_ = std::max(piece_bytes_ / 2, kPieceBytesMin);
  if (took_s < kShortSync_s) piece_bytes_ = std::min(piece_bytes_ * 2, kPieceBytesMax);
  return {};
}

Result<void> OutputFile::close() {
  Result<void> outcome = sync();
  const int fd = std::exchange(fd_, -1);
  // The metadata that fdatasync does not sync.
  if (outcome.ok() && ::fsync(fd) != 0 && errno != EINVAL) {
    outcome = file_error("sync", path_, errno);
  }
  if (::close(fd) != 0 && outcome.ok()) return file_error("close", path_, errno);
  return outcome;
}

}  // namespace motley
