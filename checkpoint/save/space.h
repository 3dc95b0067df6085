// A check of disk space for a checkpoint before anything is written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string>

#include "base/result.h"

namespace motley {

// The size of one rank's part, and the disk space that its machine sees.
struct SpaceReport {
  std::uint64_t needed_bytes = 0;
  std::uint64_t free_bytes = 0;
  std::uint64_t folder = 0;  // equal for ranks of one folder; 0 = the launcher's
};

inline constexpr std::uint64_t kUnknownSpace = std::numeric_limits<std::uint64_t>::max();

// Free bytes, for unprivileged users, on the disk of `folder`; kUnknownSpace if the file system
// does not report them.
[[nodiscard]] std::uint64_t free_bytes(const std::filesystem::path& folder);

// kCorrupt, with the missing bytes, if the parts of all ranks that write into one folder do not fit
// together: each alone may fit, and the disk would fill up half-way. Uses the smallest free space
// that any of a folder's ranks reports. `folder`: this rank's own. `reports`: [Rank]. `machines`:
// [Rank], their names, for messages about separate folders.
[[nodiscard]] Result<void> require_space(const std::filesystem::path& folder,
                                         std::span<const SpaceReport> reports,
                                         std::span<const std::string> machines);

}  // namespace motley
