#include "data/files/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/system/files.h"

namespace motley {
namespace {

Error unreadable(const std::filesystem::path& path, int errno_value) {
  Error error = file_error("read", path, errno_value);
  error.code = ErrorCode::kData;
  return error;
}

// The mapping outlives the descriptor, so the caller always closes the descriptor.
Result<std::span<const std::byte>> map_all(int fd, const std::filesystem::path& path) {
  struct stat info {};

  if (::fstat(fd, &info) != 0) return unreadable(path, errno);
  if (!S_ISREG(info.st_mode)) {
    return Error{ErrorCode::kData, fmt::format("cannot read {}", path.string()),
                 "it is not a regular file", "set data.path to a file"};
  }
  const auto size = static_cast<std::size_t>(info.st_size);
  if (size == 0) return std::span<const std::byte>{};  // mmap refuses an empty range
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (address == MAP_FAILED) return unreadable(path, errno);
  return std::span(static_cast<const std::byte*>(address), size);
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  // Non-blocking, because opening a named pipe without a writer would block.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return unreadable(path, errno);
  const auto bytes = map_all(fd, path);
  ::close(fd);
  if (!bytes.ok()) return bytes.error();
  return MappedFile(*bytes);
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

void MappedFile::release_pages() const {
  if (!bytes_.empty()) {
    ::madvise(const_cast<std::byte*>(bytes_.data()), bytes_.size(), MADV_DONTNEED);
  }
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace motley
