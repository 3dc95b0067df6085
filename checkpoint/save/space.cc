#include "checkpoint/save/space.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

namespace motley {

std::uint64_t free_bytes(const std::filesystem::path& folder) {
  std::error_code code;
  const std::filesystem::space_info space = std::filesystem::space(folder, code);
  const bool is_known = !code && space.capacity > 0;
  return is_known ? space.available : kUnknownSpace;
}

Result<void> require_space(const std::filesystem::path& folder,
                           std::span<const SpaceReport> reports) {
  std::uint64_t needed = 0;
  std::uint64_t free = kUnknownSpace;
  for (const SpaceReport& report : reports) {
    needed += std::min(report.needed_bytes, kUnknownSpace - needed);
    free = std::min(free, report.free_bytes);
  }
  if (needed <= free) return {};
  return Error{
      ErrorCode::kCorrupt,
      fmt::format("the disk has no room for a checkpoint, {}", folder.string()),
      fmt::format("the parts of all {} ranks need {} bytes and {} bytes are free: {} bytes are "
                  "missing",
                  reports.size(), needed, free, needed - free),
      "free space on that disk; checkpoint.keep says how many checkpoints stay"};
}

}  // namespace motley
