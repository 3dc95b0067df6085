// MetricsFile: the run's metrics.jsonl, one JSON object a line, each step once and in order, also
// when a run is resumed from a checkpoint that is older than its last line.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/json.h"
#include "base/result.h"
#include "cluster/launch/owned_fd.h"

namespace motley {

class MetricsFile {
 public:
  // Opens for adding after the line of `resumed_step` (0 = a fresh run): every line from the first
  // that belongs to a later step, or is damaged, is cut off. Makes the file when there is none.
  // kCorrupt when it cannot be read or written.
  [[nodiscard]] static Result<MetricsFile> open(const std::filesystem::path& path,
                                                std::int64_t resumed_step);

  // Hands one line to the system at once, so others can follow the run. kCorrupt when it cannot be
  // written whole.
  [[nodiscard]] Result<void> append(const Json& metrics);

 private:
  MetricsFile(OwnedFd fd, std::filesystem::path path);

  OwnedFd fd_;
  std::filesystem::path path_;
};

}  // namespace motley
