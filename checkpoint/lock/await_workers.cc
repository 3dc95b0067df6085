#include "checkpoint/lock/await_workers.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "checkpoint/fencing_token.h"
#include "checkpoint/folders.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

// The bytes that the ranks of this launch have written of uncommitted checkpoints.
std::uint64_t partial_bytes(const fs::path& run_dir, const std::string& launch) {
  std::uint64_t bytes = 0;
  const fs::path root = checkpoints_root(run_dir);
  for (const FolderName& name : folder_names(root)) {
    if (name.kind != FolderKind::kPartial || name.launch != launch) continue;
    std::error_code code;
    fs::directory_iterator it(root / folder_name(name), code);
    for (; !code && it != fs::directory_iterator(); it.increment(code)) {
      const std::uintmax_t size = it->file_size(code);
      if (!code) bytes += size;
    }
  }
  return bytes;
}

}  // namespace

void await_workers(const fs::path& run_dir,
                   const LaunchRecord& record,
                   double stall_s,
                   const Log& log) {
  constexpr std::chrono::milliseconds kMoment(20);
  if (!has_workers(run_dir, record.number)) return;
  log.info(fmt::format(
      "the launcher of launch {} ({}) is gone, and its workers save their step; waiting "
      "for their end, at most {:g} s after the last byte",
      record.number, describe_launch(record), stall_s));
  std::uint64_t seen_bytes = 0;
  Deadline deadline = Deadline::after_s(stall_s);
  while (has_workers(run_dir, record.number)) {
    if (deadline.passed()) {
      log.warn(fmt::format("workers of launch {} remain; nothing that they still save is used",
                           record.number));
      return;
    }
    std::this_thread::sleep_for(kMoment);
    const std::uint64_t bytes = partial_bytes(run_dir, record.launch);
    if (std::exchange(seen_bytes, bytes) != bytes) deadline = Deadline::after_s(stall_s);
  }
}

}  // namespace motley
