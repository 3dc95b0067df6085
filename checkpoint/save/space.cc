#include "checkpoint/save/space.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/system/files.h"

namespace motley {

std::uint64_t free_bytes(const std::filesystem::path& folder) {
  return free_disk_bytes(folder).value_or(kUnknownSpace);
}

Result<void> require_space(const std::filesystem::path& folder,
                           std::span<const SpaceReport> reports,
                           std::span<const std::string> machines) {
  struct Sum {
    std::size_t first_rank = 0;
    std::uint64_t needed_bytes = 0;
    std::uint64_t free_bytes = kUnknownSpace;
    int ranks = 0;
  };

  std::map<std::uint64_t, Sum> folders;
  for (std::size_t rank = 0; rank < reports.size(); ++rank) {
    const SpaceReport& report = reports[rank];
    Sum& sum = folders.try_emplace(report.folder, Sum{.first_rank = rank}).first->second;
    sum.needed_bytes += std::min(report.needed_bytes, kUnknownSpace - sum.needed_bytes);
    sum.free_bytes = std::min(sum.free_bytes, report.free_bytes);
    ++sum.ranks;
  }
  for (const auto& [id, sum] : folders) {
    if (sum.needed_bytes <= sum.free_bytes) continue;
    const bool is_everybodys = folders.size() == 1 && id == 0;
    const std::string disk =
        is_everybodys ? "the disk" : fmt::format("the disk of {}", machines[sum.first_rank]);
    const std::string where = is_everybodys ? ", " + folder.string() : "";
    return Error{
        ErrorCode::kCorrupt, fmt::format("{} has too little space for a checkpoint{}", disk, where),
        fmt::format(
            "the parts of {} {} rank{} need {} bytes, {} bytes are free, {} bytes are missing",
            is_everybodys ? "all" : "its", sum.ranks, sum.ranks == 1 ? "" : "s", sum.needed_bytes,
            sum.free_bytes, sum.needed_bytes - sum.free_bytes),
        "free space on that disk; checkpoint.keep is the number of retained checkpoints"};
  }
  return {};
}

}  // namespace motley
