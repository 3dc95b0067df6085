// What a worker's jobs need of its launcher: somebody to tell what happens, and somebody to hear
// from. WorkerChannel is the real one; tests have their own.
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
  // The launcher's next message. kPeer when none comes in time; `what` names it.
  [[nodiscard]] virtual Result<Json> receive(Deadline deadline, const std::string& what) = 0;

  // Touched whenever the launcher says that some worker of the group got on. Lives with the
  // channel.
  [[nodiscard]] virtual const ProgressMark& group_progress() const = 0;

  // Whether the launcher has asked to end the training after the step under way. Any thread.
  [[nodiscard]] virtual bool is_to_finish() const = 0;
};

}  // namespace motley
