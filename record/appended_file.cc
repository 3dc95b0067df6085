#include "record/appended_file.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <utility>

#include "base/system/files.h"

namespace motley {

Result<AppendedFile> AppendedFile::open(const std::filesystem::path& path,
                                        std::int64_t whole_bytes,
                                        std::size_t waiting_bytes_max) {
  // O_NOFOLLOW: if another user placed a link there, its target would be cut off.
  MOTLEY_ASSIGN(OwnedFd fd, open_file(path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW));
  if (::ftruncate(fd.get(), whole_bytes) != 0) return file_error("shorten", path, errno);
  return AppendedFile(std::move(fd), path, whole_bytes, waiting_bytes_max);
}

Result<void> AppendedFile::append(std::string_view piece) {
  if (waiting_.size() + piece.size() <= waiting_bytes_max_) {
    waiting_ += piece;
  } else {
    ++left_out_;
  }
  return write_waiting();
}

Result<void> AppendedFile::write_waiting() {
  const ssize_t written = ::write(fd_.get(), waiting_.data(), waiting_.size());
  if (written == static_cast<ssize_t>(waiting_.size())) {
    whole_bytes_ += written;
    waiting_.clear();
    return {};
  }
  // A partial write means a full disk.
  const Error error = file_error("write", path_, written < 0 ? errno : ENOSPC);
  if (written > 0 && ::ftruncate(fd_.get(), whole_bytes_) != 0) {
    return file_error("shorten", path_, errno);
  }
  return error;
}

Result<void> AppendedFile::finish() {
  if (!waiting_.empty()) MOTLEY_TRY(write_waiting());
  if (left_out_ == 0) return {};
  return Error{ErrorCode::kCorrupt,
               fmt::format("{} pieces are missing from {}", left_out_, path_.string()),
               "writing failed for so long that the buffer in memory is full", ""};
}

AppendedFile::AppendedFile(OwnedFd fd,
                           std::filesystem::path path,
                           std::int64_t whole_bytes,
                           std::size_t max)
    : fd_(std::move(fd)),
      path_(std::move(path)),
      whole_bytes_(whole_bytes),
      waiting_bytes_max_(max) {}

}  // namespace motley
