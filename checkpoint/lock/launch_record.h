// LaunchRecord: what a file of `launches/` says of the launcher that made it. Format:
// docs/formats/launches.md.
#pragma once

#include <time.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/system/process_identity.h"

namespace motley {

struct LaunchRecord {
  std::int64_t number = 0;
  std::string launch;  // launch_text
  ProcessIdentity process;
  std::string since;      // for people, UTC
  bool is_known = false;  // the file was read whole
  bool is_free = false;   // its launcher has given the folder back
  // It is of a machine's own folder, and the process a worker there: the launcher may be elsewhere.
  bool is_of_worker = false;
  timespec renewed{};  // the file's time, by the clock of the file system
};

// What the file holds. As long when the record is free as when it is not, so that the one can be
// written over the other.
[[nodiscard]] std::string launch_record_text(const LaunchRecord& record);

// What the file says as far as it says it: one that is being written, or was when its launcher
// died, names no process that can be looked up. Nothing when there is no such file.
[[nodiscard]] std::optional<LaunchRecord> read_launch_record(const std::filesystem::path& run_dir,
                                                             std::int64_t number);

// The number of the last launch; 0 = none yet.
[[nodiscard]] std::int64_t last_launch(const std::filesystem::path& run_dir);

// The launch that seems to be at work in the folder, to tell a person. One whose process cannot be
// seen from here counts for as long as its file was renewed within the last minute of this clock.
[[nodiscard]] std::optional<LaunchRecord> launch_under_way(const std::filesystem::path& run_dir);

// "process 1234 on desk, since 2026-11-22 16:40:11 UTC"; of a worker "worker process 1234 on box,
// since …, of a launcher that may be on another machine".
[[nodiscard]] std::string describe_launch(const LaunchRecord& record);

}  // namespace motley
