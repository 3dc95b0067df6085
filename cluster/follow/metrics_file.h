// MetricsFile: the run's metrics.jsonl, one JSON object a line, each step once and in order, also
// when a run is resumed from a checkpoint that is older than its last line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <utility>

#include "base/json.h"
#include "base/result.h"
#include "cluster/follow/appended_file.h"

namespace motley {

class MetricsFile {
 public:
  // Opens for adding after the line of `resumed_step` (0 = a fresh run): every line from the first
  // readable one that belongs to a later step is cut off, and a last one that is not whole. Makes
  // the file when there is none.
  // kCorrupt when it cannot be read or written.
  [[nodiscard]] static Result<MetricsFile> open(const std::filesystem::path& path,
                                                std::int64_t resumed_step);

  // As AppendedFile's: a disk that is full for a while costs no line.
  [[nodiscard]] Result<void> append(const Json& metrics);
  [[nodiscard]] Result<void> finish();

 private:
  explicit MetricsFile(AppendedFile file) : file_(std::move(file)) {}

  AppendedFile file_;
};

// The last step that the file tells of, also while a run writes it; 0 where there is none.
[[nodiscard]] std::int64_t last_metrics_step(const std::filesystem::path& path);

}  // namespace motley
