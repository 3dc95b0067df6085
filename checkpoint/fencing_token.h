// A launch of a run, and the file in the run folder that records it.
//
// Each launcher that locks a run folder gets a number, one more than the last, and draws a nonce;
// "000007-9f3c5a1b2c3d4e5f", the fencing token, is both. It names the partial folders of this
// launch's checkpoints, so that two launches never write into one. It is also in
// `launches/000007.json`, from which a worker recognises that its run folder is the launcher's and
// not a copy. Format: docs/formats/launches.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.h"
#include "base/system/owned_fd.h"

namespace motley {

struct LaunchId {
  // Starts at 1. It is the epoch in the frames and handshakes of this launch, so that a leftover
  // worker of an earlier launch cannot join.
  std::uint32_t number = 0;
  std::string nonce;  // 16 hexadecimal digits
};

[[nodiscard]] std::string launch_text(const LaunchId& launch);
// kCorrupt if `text` is not exactly what launch_text returns.
[[nodiscard]] Result<LaunchId> parse_launch(const std::string& text);

[[nodiscard]] std::filesystem::path launches_folder(const std::filesystem::path& run_dir);
[[nodiscard]] std::filesystem::path launch_file(const std::filesystem::path& run_dir,
                                                std::int64_t number);

// kConfig if the folder does not exist or is not the one that this launch has locked: a copy, or
// another folder of that name. `launch`: as launch_text.
[[nodiscard]] Result<void> require_launch(const std::filesystem::path& run_dir,
                                          const std::string& launch);

// Marks the launch as one that still has workers, for as long as the descriptor is open: a shared
// lock (flock) of its file in `launches/`. An invalid descriptor if that is impossible, for example
// on a file system without locks.
[[nodiscard]] OwnedFd mark_worker(const std::filesystem::path& run_dir, const std::string& launch);

// Whether a process on any machine has marked the launch. False if that cannot be determined.
[[nodiscard]] bool has_workers(const std::filesystem::path& run_dir, std::int64_t number);

}  // namespace motley
