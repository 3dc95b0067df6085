// The interface of a worker's jobs to the launcher: sending events and receiving messages.
// Implemented by WorkerChannel, and by the tests' own.
#pragma once

#include <string>

#include "base/clock.h"
#include "base/json_fwd.h"
#include "base/result.h"

namespace motley {

class EventSink {
 public:
  virtual ~EventSink() = default;

  // Sends one event. Any thread.
  virtual void send(const Json& event) = 0;
};

class LauncherChannel : public EventSink {
 public:
  // The launcher's next message. kPeer if none arrives in time; `what` names it.
  [[nodiscard]] virtual Result<Json> receive(Deadline deadline, const std::string& what) = 0;

  // Touched whenever the launcher reports progress of any worker of the group. Lives as long as the
  // channel.
  [[nodiscard]] virtual const ProgressClock& group_progress_clock() const = 0;

  // Whether the launcher has asked to end the training after the current step. Any thread.
  [[nodiscard]] virtual bool is_to_finish() const = 0;
};

}  // namespace motley
