// MetricsFile: the run's metrics.jsonl, one JSON object a line, each step once and in order, also
// when a run is resumed from a checkpoint that is older than its last line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/json.h"
#include "base/result.h"
#include "base/system/owned_fd.h"

namespace motley {

class MetricsFile {
 public:
  // Opens for adding after the line of `resumed_step` (0 = a fresh run): every line from the first
  // readable one that belongs to a later step is cut off, and a last one that is not whole. Makes
  // the file when there is none.
  // kCorrupt when it cannot be read or written.
  [[nodiscard]] static Result<MetricsFile> open(const std::filesystem::path& path,
                                                std::int64_t resumed_step);

  // Hands one line to the system at once, so others can follow the run. kCorrupt when it cannot be
  // written whole: the file then ends in its last whole line, and this one waits in memory for the
  // next call, so that a disk that is full for a while costs no line.
  [[nodiscard]] Result<void> append(const Json& metrics);

  // Tries a last time to write what waits. kCorrupt when lines are missing from the file.
  [[nodiscard]] Result<void> finish();

 private:
  MetricsFile(OwnedFd fd, std::filesystem::path path, std::int64_t whole_bytes);

  [[nodiscard]] Result<void> write_waiting();

  OwnedFd fd_;
  std::filesystem::path path_;
  std::int64_t whole_bytes_;   // of the lines in the file
  std::string waiting_;        // whole lines that are not in it yet
  std::int64_t left_out_ = 0;  // lines that had no room in memory either
};

// The last step that the file tells of, also while a run writes it; 0 where there is none.
[[nodiscard]] std::int64_t last_metrics_step(const std::filesystem::path& path);

}  // namespace motley
