// ShardsProgress: the machines' total progress with the parts of a checkpoint, in bytes, on a
// progress line.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "base/process/progress_line.h"
#include "base/progress_counter.h"
#include "checkpoint/work_observer.h"

namespace motley {

// One owner thread.
class ShardsProgress {
 public:
  // `line`: nullptr = no output. REQUIRES: it outlives this. `what`, e.g. "verifying the
  // checkpoint", is a literal.
  ShardsProgress(const char* what, ProgressLine* line) : what_(what), line_(line) {}

  // Clears the line.
  ~ShardsProgress();
  ShardsProgress(const ShardsProgress&) = delete;
  ShardsProgress& operator=(const ShardsProgress&) = delete;

  // Displays the progress of this process's own work. REQUIRES: `work` outlives this.
  void follow(const ProgressCounter& work);

  // Stores the progress of worker number `worker`. Ignored while its total is 0.
  void take(int worker, const ProgressBytes& bytes);

  [[nodiscard]] const ProgressBytes& sum() const { return sum_; }

 private:
  const char* const what_;
  ProgressLine* const line_;
  std::map<int, ProgressBytes> by_worker_;
  ProgressBytes sum_;
};

// The same for work of this process on files.
class FilesProgress final : public WorkObserver {
 public:
  explicit FilesProgress(ProgressLine* line) : line_(line) {}

  ~FilesProgress() override;
  FilesProgress(const FilesProgress&) = delete;
  FilesProgress& operator=(const FilesProgress&) = delete;

  void begin(const char* what, std::uint64_t bytes_total) override;
  [[nodiscard]] Result<void> advance(std::uint64_t bytes) override;

 private:
  ProgressLine* const line_;
  const char* what_ = "";
  ProgressBytes bytes_;
};

}  // namespace motley
