// Pending: an operation under way that owns the buffer lent to it. wait() gives the buffer back.
//
// Any thread may wait; the transport's own thread completes it. Dropping an unfinished Pending, as
// wait() does when its deadline passes, is allowed: the transport keeps the buffer until the
// network has let go of it, and a receive stays posted.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/result.h"
#include "comm/buffer.h"

namespace motley {

// Shared by the waiter and the transport; shared_ptr because either may finish with it last.
class Completion {
 public:
  // Called once, by the transport.
  void finish(Result<Buffer> outcome);
  [[nodiscard]] bool done() const;
  // Called once. kPeer when the deadline passes. Every error begins "waiting for <what>: ".
  [[nodiscard]] Result<Buffer> wait(Deadline deadline, const std::string& what);

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Result<Buffer>> outcome_;  // guarded by mutex_
};

class Pending {
 public:
  Pending() = default;

  explicit Pending(std::shared_ptr<Completion> completion) : completion_(std::move(completion)) {}

  [[nodiscard]] bool valid() const { return completion_ != nullptr; }

  // REQUIRES: valid().
  [[nodiscard]] bool done() const { return completion_->done(); }

  // Takes the outcome; afterwards valid() is false. REQUIRES: valid().
  [[nodiscard]] Result<Buffer> wait(Deadline deadline, const std::string& what) {
    return std::exchange(completion_, nullptr)->wait(deadline, what);
  }

 private:
  std::shared_ptr<Completion> completion_;
};

}  // namespace motley
