// MetricsFile: the run's metrics.jsonl, one JSON object per line, each step once and in order, also
// if a run is resumed from a checkpoint older than its last line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <utility>

#include "base/json.h"
#include "base/result.h"
#include "record/appended_file.h"

namespace motley {

class MetricsFile {
 public:
  // Opens the file for appending after the line of `resumed_step` (0 = a new run). Lines from the
  // first readable one of a later step on are cut off, and an incomplete last line. Creates the
  // file if there is none. kCorrupt if it cannot be read or written.
  [[nodiscard]] static Result<MetricsFile> open(const std::filesystem::path& path,
                                                std::int64_t resumed_step);

  // As AppendedFile's: a temporarily full disk loses no line.
  [[nodiscard]] Result<void> append(const Json& metrics);
  [[nodiscard]] Result<void> finish();

 private:
  explicit MetricsFile(AppendedFile file) : file_(std::move(file)) {}

  AppendedFile file_;
};

// The last step in the file, also while a run writes it; 0 if there is none.
[[nodiscard]] std::int64_t last_metrics_step(const std::filesystem::path& path);

}  // namespace motley
