// LaunchRecord: the contents of a file of `launches/`, which describes a launcher. Format:
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
  std::string since;      // for display, UTC
  bool is_known = false;  // the file was read completely
  bool is_free = false;   // its launcher has released the folder
  bool is_left = false;   // of a worker that has lost its launcher: it saves its step and ends
  // A record in a machine's own folder, of a worker process there: the launcher may be elsewhere.
  bool is_of_worker = false;
  timespec renewed{};  // modification time, by the clock of the file system
};

// The file's text. Its length is the same for free, held and left records, so that one can
// overwrite the other.
[[nodiscard]] std::string launch_record_text(const LaunchRecord& record);

// The record as far as the file contains it: a file that is being written, or whose launcher was
// killed while writing, has no process to look up. nullopt if there is no such file.
[[nodiscard]] std::optional<LaunchRecord> read_launch_record(const std::filesystem::path& run_dir,
                                                             std::int64_t number);

// The number of the last launch; 0 = none yet.
[[nodiscard]] std::int64_t last_launch(const std::filesystem::path& run_dir);

// The launch that seems to be active in the folder, for messages. If its process is not visible
// from here, it counts as active while its file was renewed within the last minute of this clock.
[[nodiscard]] std::optional<LaunchRecord> active_launch(const std::filesystem::path& run_dir);

// "process 1234 on desk, since 2026-11-22 16:40:11 UTC"; for a worker "worker process 1234 on box,
// since …, of a launcher that may be on another machine".
[[nodiscard]] std::string describe_launch(const LaunchRecord& record);

}  // namespace motley
