// One wait for whatever comes next from a group of workers: their streams, their ends, or a signal
// to this process.
#pragma once

#include <memory>
#include <vector>

#include "base/clock.h"
#include "cluster/launch/worker.h"
#include "cluster/process/stop_signals.h"

namespace motley {

enum class Stream { kInput, kOutput, kErrors, kExit, kSignal };

struct ReadyStream {
  Stream stream;
  Worker* worker;  // nullptr for the signal
};

struct PollOutcome {
  std::vector<ReadyStream> ready;
  bool timed_out =
      false;  // otherwise, when nothing is ready, a signal that is not ours interrupted
};

// Waits until `deadline` at most. A worker's input is ready when it takes more of what waits for
// it, the other streams when there is something to read.
[[nodiscard]] PollOutcome poll_workers(const std::vector<std::unique_ptr<Worker>>& workers,
                                       const StopSignals& signals,
                                       const Deadline& deadline);

}  // namespace motley
