// The interface of a worker's jobs to the launcher: sending events and receiving messages.
// Implemented by WorkerChannel, and by the tests' own.
#pragma once

#include <cstdint>
#include <functional>
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

  // Whether the training is to end after the current step, because the launcher has asked for it
  // or, after outlive_launcher(), is lost. Any thread.
  [[nodiscard]] virtual bool is_to_finish() const = 0;

  // From now on the loss of the launcher does not end the process at once: it may finish and save
  // its step. It ends if `progress` (any thread) returns the same count for too long.
  virtual void outlive_launcher(std::function<std::uint64_t()> progress) = 0;

  // Whether the launcher is lost. Events are then dropped, and no message arrives. Any thread.
  [[nodiscard]] virtual bool is_launcher_lost() const = 0;
};

}  // namespace motley
