// WorkProgress: progress display and cancellation of long work on files. It shows the progress in
// a line on a terminal. A signal ends the work between two pieces, so that partial results are
// removed. One owner thread.
#pragma once

#include <optional>

#include "base/process/progress_line.h"
#include "base/process/stop_signals.h"
#include "base/progress_counter.h"
#include "checkpoint/work_observer.h"

namespace motley {

// REQUIRES: as of StopSignals.
class WorkProgress final : public WorkObserver {
 public:
  void begin(const char* what, std::uint64_t bytes_total) override;
  // kInterrupted or kTerminated after a signal.
  [[nodiscard]] Result<void> advance(std::uint64_t bytes) override;

  // Removes the line from the screen before other output.
  void clear() { line_.clear(); }

 private:
  StopSignals signals_;
  ProgressCounter counter_;
  std::optional<ProgressCounter::Task> task_;
  ProgressLine line_{""};
};

}  // namespace motley
