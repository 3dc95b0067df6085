// PartsProgress: the machines' total progress with the parts of a checkpoint, in bytes, on a
// progress line.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "base/work_counter.h"
#include "checkpoint/work_watch.h"
#include "cluster/process/work_line.h"

namespace motley {

// One owner thread.
class PartsProgress {
 public:
  // `line`: nullptr = no output. REQUIRES: it outlives this. `what`, e.g. "verifying the
  // checkpoint", is a literal.
  PartsProgress(const char* what, WorkLine* line) : what_(what), line_(line) {}

  // Clears the line.
  ~PartsProgress();
  PartsProgress(const PartsProgress&) = delete;
  PartsProgress& operator=(const PartsProgress&) = delete;

  // Displays the progress of this process's own work. REQUIRES: `work` outlives this.
  void follow(const WorkCounter& work);

  // Stores the progress of worker number `worker`. Ignored while its total is 0.
  void take(int worker, const WorkBytes& bytes);

  [[nodiscard]] const WorkBytes& sum() const { return sum_; }

 private:
  const char* const what_;
  WorkLine* const line_;
  std::map<int, WorkBytes> by_worker_;
  WorkBytes sum_;
};

// The same for work of this process on files.
class FilesProgress final : public WorkWatch {
 public:
  explicit FilesProgress(WorkLine* line) : line_(line) {}

  ~FilesProgress() override;
  FilesProgress(const FilesProgress&) = delete;
  FilesProgress& operator=(const FilesProgress&) = delete;

  void begin(const char* what, std::uint64_t bytes_total) override;
  [[nodiscard]] Result<void> advance(std::uint64_t bytes) override;

 private:
  WorkLine* const line_;
  const char* what_ = "";
  WorkBytes bytes_;
};

}  // namespace motley
