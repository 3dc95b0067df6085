// Waits for the next events of a group of workers: their streams, their exits, or a signal to this
// process.
#pragma once

#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/process/stop_signals.h"
#include "cluster/launch/worker.h"

namespace motley {

enum class Stream { kInput, kOutput, kErrors, kExit, kSignal };

struct ReadyStream {
  Stream stream;
  Worker* worker;  // nullptr for the signal
};

struct PollOutcome {
  std::vector<ReadyStream> ready;
  // Otherwise, if nothing is ready, an unrelated signal interrupted the wait.
  bool timed_out = false;
};

// Waits until `deadline` at most. A worker's input is ready when it accepts more of its queued
// bytes, the other streams when they are readable.
[[nodiscard]] PollOutcome poll_workers(const std::vector<std::unique_ptr<Worker>>& workers,
                                       const StopSignals& signals,
                                       const Deadline& deadline);

}  // namespace motley
