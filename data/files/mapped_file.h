// A file mapped read-only into memory, so that a corpus may exceed the memory.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "base/result.h"

namespace motley {

// Owns the mapping. The file must not shrink while it is mapped: the next read of the lost part
// would kill the process (SIGBUS).
class MappedFile {
 public:
  // kData if the path is not a readable regular file.
  [[nodiscard]] static Result<MappedFile> open(const std::filesystem::path& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) = delete;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

  // Returns the pages read so far to the system, as far as this process holds them; a later read
  // maps them again. Safe during concurrent reads.
  void release_pages() const;

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::span<const std::byte> bytes_;  // empty = nothing mapped
};

}  // namespace motley
