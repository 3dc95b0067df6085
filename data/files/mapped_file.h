// A file mapped read-only into memory, so that a corpus may be larger than the memory.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "base/result.h"

namespace motley {

// Owns the mapping. The file must not shrink while it is mapped: the system then ends the process
// (SIGBUS) at the next read of the lost part.
class MappedFile {
 public:
  // kData when the path is not a regular file that can be read.
  [[nodiscard]] static Result<MappedFile> open(const std::filesystem::path& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) = delete;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

  // Gives the pages that were read so far back to the system, as far as this process holds them;
  // a later read maps them anew. Safe beside readers.
  void release_pages() const;

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::span<const std::byte> bytes_;  // empty = nothing mapped
};

}  // namespace motley
