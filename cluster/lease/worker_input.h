// WorkerInput: the launcher's end of a worker's standard input. Bytes that do not fit into the pipe
// are queued here, so that a worker that does not read cannot block the launcher.
//
// renew() may be called from any thread, the other functions from the owner's only: the renewal of
// a lease must not depend on the owner's other work.
#pragma once

#include <mutex>
#include <string>

#include "base/json.h"
#include "base/system/owned_fd.h"

namespace motley {

class WorkerInput {
 public:
  // Takes ownership of a non-blocking descriptor.
  void open(OwnedFd fd);
  // Drops queued bytes.
  void close();

  // Queues one message and writes as much as the pipe accepts. No effect while closed.
  void send(const Json& message);
  void flush();
  // Writes `line` if that is possible at once. If the pipe is full, the worker has unread messages
  // anyway.
  void renew(const std::string& line);

  // The descriptor to poll for writing; -1 while nothing is queued.
  [[nodiscard]] int waits_for() const;

 private:
  void flush_locked();

  mutable std::mutex mutex_;
  OwnedFd fd_;          // guarded by mutex_
  std::string queued_;  // guarded by mutex_
};

}  // namespace motley
