// A save that all ranks of an earlier launch completed but its launcher did not commit, because it
// was killed, or its machine went down: workers save their step when they lose their launcher.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "checkpoint/save/shard_report.h"

namespace motley {

// The step of the newest such save, if it is newer than all checkpoints. Only reports are read.
[[nodiscard]] std::optional<std::int64_t> left_save(const std::filesystem::path& run_dir);

// Commits the newest such save of which every byte in this folder is as reported, and returns its
// step; nullopt if there is none. One that is incomplete, damaged or contradictory is never
// committed, and a warning names a complete one that is refused. elsewhere: of machines with a
// folder of their own, whose bytes are not read. REQUIRES: the caller holds the folder, and no
// worker of an earlier launch writes to it.
[[nodiscard]] std::optional<std::int64_t> commit_left_save(
    const std::filesystem::path& run_dir,
    const Log& log,
    const std::vector<LeftReport>& elsewhere = {});

}  // namespace motley
