// WorkerInput: the launcher's end of a worker's standard input. What does not fit into the pipe
// waits here, so that a worker that does not read cannot hold the launcher up.
//
// renew() may be called from any thread, the rest from the owner's: the lease of a worker must not
// depend on what the owner is busy with.
#pragma once

#include <mutex>
#include <string>

#include "base/json.h"
#include "base/system/owned_fd.h"

namespace motley {

class WorkerInput {
 public:
  // Takes over a non-blocking descriptor.
  void open(OwnedFd fd);
  // What is still queued is dropped.
  void close();

  // Queues one message and writes what the pipe takes. Nothing happens while it is closed.
  void send(const Json& message);
  void flush();
  // Writes `line` if that is possible at once: a worker whose pipe is full has words to read.
  void renew(const std::string& line);

  // The descriptor to wait for room on; -1 while nothing is queued.
  [[nodiscard]] int waits_for() const;

 private:
  void flush_locked();

  mutable std::mutex mutex_;
  OwnedFd fd_;          // guarded by mutex_
  std::string queued_;  // guarded by mutex_
};

}  // namespace motley
