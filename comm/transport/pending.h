// Pending: an operation in progress that owns the buffer lent to it. wait() returns the buffer.
//
// Any thread may wait; the transport's own thread completes it. Dropping an unfinished Pending, as
// wait() does when its deadline passes, is allowed: the transport retains the buffer until the
// network has released it, and a receive stays posted.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/result.h"
#include "comm/transport/buffer.h"

namespace motley {

// A notifier for the end of operations, so that a thread can wait for the first of many.
class Notifier {
 public:
  void notify();
  // Waits for a notify() since this last returned true; false if the deadline passes first.
  [[nodiscard]] bool wait(Deadline deadline);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_notified_ = false;  // guarded by mutex_
};

// Shared by the waiter and the transport; shared_ptr because either may release it last.
class Completion {
 public:
  // Called once, by the transport.
  void finish(Result<Buffer> outcome);
  [[nodiscard]] bool done() const;
  // Called once. kPeer if the deadline passes. Every error begins with "waiting for <what>: ".
  [[nodiscard]] Result<Buffer> wait(Deadline deadline, const std::string& what);
  // Notifies when the operation ends, or at once if it has ended.
  void notify_when_done(std::shared_ptr<Notifier> notifier);

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Result<Buffer>> outcome_;  // guarded by mutex_
  std::shared_ptr<Notifier> notifier_;     // guarded by mutex_; shared as it may outlive the waiter
};

class Pending {
 public:
  Pending() = default;

  explicit Pending(std::shared_ptr<Completion> completion) : completion_(std::move(completion)) {}

  [[nodiscard]] bool valid() const { return completion_ != nullptr; }

  // REQUIRES: valid().
  [[nodiscard]] bool done() const { return completion_->done(); }

  // Behaves as Completion::notify_when_done. REQUIRES: valid().
  void notify_when_done(std::shared_ptr<Notifier> notifier) {
    completion_->notify_when_done(std::move(notifier));
  }

  // Takes the outcome; afterwards valid() is false. REQUIRES: valid().
  [[nodiscard]] Result<Buffer> wait(Deadline deadline, const std::string& what) {
    return std::exchange(completion_, nullptr)->wait(deadline, what);
  }

 private:
  std::shared_ptr<Completion> completion_;
};

}  // namespace motley
