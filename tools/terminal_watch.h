// TerminalWatch: long work on files as a person sees it. One line on a terminal says how far it is;
// a signal ends it between two pieces, so that what it has half made is removed.
// One owner thread.
#pragma once

#include <optional>

#include "base/work_counter.h"
#include "checkpoint/work_watch.h"
#include "cluster/process/stop_signals.h"
#include "cluster/process/work_line.h"

namespace motley {

// REQUIRES: as of StopSignals.
class TerminalWatch final : public WorkWatch {
 public:
  void begin(const char* what, std::uint64_t bytes_total) override;
  // kInterrupted or kTerminated when a signal has arrived.
  [[nodiscard]] Result<void> advance(std::uint64_t bytes) override;

  // Takes the line off the screen, before something is printed.
  void clear() { line_.clear(); }

 private:
  StopSignals signals_;
  WorkCounter counter_;
  std::optional<WorkCounter::Task> task_;
  WorkLine line_{""};
};

}  // namespace motley
