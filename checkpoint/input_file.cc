#include "checkpoint/input_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/system/files.h"

namespace motley {
namespace {

// Small pieces, so that a slow read still shows progress.
constexpr std::size_t kPieceBytes = std::size_t{8} << 20;

Error unreadable(const std::filesystem::path& path, std::string cause) {
  return {ErrorCode::kCorrupt, fmt::format("cannot read {}", path.string()), std::move(cause),
          "check the path, or copy the file again"};
}

}  // namespace

InputFile::InputFile(int fd, std::filesystem::path path, std::uint64_t bytes, ProgressCounter* work)
    : fd_(fd), path_(std::move(path)), bytes_(bytes), work_(work) {}

InputFile::InputFile(InputFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      path_(std::move(other.path_)),
      bytes_(other.bytes_),
      work_(other.work_) {}

InputFile::~InputFile() {
  if (fd_ >= 0) ::close(fd_);
}

Result<InputFile> InputFile::open(const std::filesystem::path& path, ProgressCounter* work) {
  // O_NONBLOCK: opening a pipe without a writer would block.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0 && errno == ELOOP) return unreadable(path, "it is a symbolic link");
  if (fd < 0) return file_error("read", path, errno);

  struct stat info {};

  const int status = ::fstat(fd, &info);
  const int stat_errno = errno;
  InputFile file(fd, path, static_cast<std::uint64_t>(info.st_size), work);
  if (status != 0) return file_error("read", path, stat_errno);
  if (!S_ISREG(info.st_mode)) return unreadable(path, "it is not a regular file");
  return file;
}

Result<void> InputFile::read_at(std::uint64_t offset, std::span<std::byte> into) const {
  while (!into.empty()) {
    const ssize_t count =
        ::pread(fd_, into.data(), std::min(into.size(), kPieceBytes), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return file_error("read", path_, errno);
    if (count == 0) return unreadable(path_, fmt::format("it ends at byte {}", offset));
    offset += static_cast<std::uint64_t>(count);
    into = into.subspan(static_cast<std::size_t>(count));
    if (work_ != nullptr) work_->add_bytes(static_cast<std::uint64_t>(count));
  }
  return {};
}

Result<std::string> InputFile::read_all(std::uint64_t max_bytes) const {
  if (bytes_ > max_bytes) {
    return unreadable(path_,
                      fmt::format("it has {} bytes; at most {} are expected", bytes_, max_bytes));
  }
  std::string text(bytes_, '\0');
  MOTLEY_TRY(read_at(0, std::as_writable_bytes(std::span(text))));
  return text;
}

}  // namespace motley
