// Whether the disk has room for a checkpoint, asked before anything is written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string>

#include "base/result.h"

namespace motley {

// One rank's part of a checkpoint and the disk as its machine sees it.
struct SpaceReport {
  std::uint64_t needed_bytes = 0;
  std::uint64_t free_bytes = 0;
  std::uint64_t folder = 0;  // equal for ranks that write into one folder; 0 = the launcher's
};

inline constexpr std::uint64_t kUnknownSpace = std::numeric_limits<std::uint64_t>::max();

// Free bytes on the disk that holds `folder`, for who is not root; kUnknownSpace where the file
// system does not tell.
[[nodiscard]] std::uint64_t free_bytes(const std::filesystem::path& folder);

// kCorrupt, saying how much is missing, when the parts of all ranks that write into one folder do
// not fit there together: each of them alone may, and the disk would fill half-way. Of a folder's
// free space the smallest that any of them sees counts. `folder`: as this rank names its own.
// `reports`: [Rank]. `machines`: [Rank], whose names tell apart the disks of folders of their own.
[[nodiscard]] Result<void> require_space(const std::filesystem::path& folder,
                                         std::span<const SpaceReport> reports,
                                         std::span<const std::string> machines);

}  // namespace motley
