// PartsProgress: how far the machines of a run are with the parts of its checkpoint, all together,
// for a person who waits: how many bytes of how many.
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
  // `line`: nullptr = nobody waits. REQUIRES: it outlives this. `what`, "verifying the checkpoint",
  // is a literal.
  PartsProgress(const char* what, WorkLine* line) : what_(what), line_(line) {}

  // The line says nothing any more.
  ~PartsProgress();
  PartsProgress(const PartsProgress&) = delete;
  PartsProgress& operator=(const PartsProgress&) = delete;

  // What is done on this machine, by this process, is counted there from now on. REQUIRES: `work`
  // outlives this.
  void follow(const WorkCounter& work);

  // Worker number `worker` has got so far. Nothing is said while no number is known.
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
