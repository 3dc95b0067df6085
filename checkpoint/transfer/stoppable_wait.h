// Waits of a transfer, which end at once when it is stopped.
#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "comm/transport/comm_errors.h"
#include "comm/transport/pending.h"

namespace motley {

// kInterrupted.
[[nodiscard]] inline Error stopped_waiting(const std::string& what) {
  return {ErrorCode::kInterrupted, "stopped while waiting for " + what, "it was asked to stop", ""};
}

// Waits until the operation, a Pending or a PendingFrame, is done; its wait() then returns at once.
// kPeer if the deadline passes, kInterrupted if stopped.
template <class Operation>
[[nodiscard]] Result<void> wait_until_done(Operation& operation,
                                           Deadline deadline,
                                           const std::stop_token& stop,
                                           const std::string& what) {
  const double given_s = deadline.left_s();
  const auto notifier = std::make_shared<Notifier>();  // the transport may notify it after the wait
  operation.notify_when_done(notifier);
  const std::stop_callback notify(stop, [&notifier] { notifier->notify(); });
  for (;;) {
    if (stop.stop_requested()) return stopped_waiting(what);
    if (operation.done()) return {};
    if (!notifier->wait(deadline)) return nothing_came(what, given_s);
  }
}

// kInterrupted if stopped before the end.
[[nodiscard]] inline Result<void> pause_for(double seconds,
                                            const std::stop_token& stop,
                                            const std::string& what) {
  Notifier notifier;
  const std::stop_callback notify(stop, [&notifier] { notifier.notify(); });
  if (notifier.wait(Deadline::after_s(seconds))) return stopped_waiting(what);
  return {};
}

}  // namespace motley
