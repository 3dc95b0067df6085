#include "comm/transport/pending.h"

#include <fmt/format.h>

#include "base/check.h"
#include "comm/transport/comm_errors.h"

namespace motley {

void Notifier::notify() {
  {
    const std::lock_guard lock(mutex_);
    is_notified_ = true;
  }
  changed_.notify_all();
}

bool Notifier::wait(Deadline deadline) {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_until(lock, deadline.time(), [&] { return is_notified_; })) {
    if (deadline.passed()) return false;
  }
  is_notified_ = false;
  return true;
}

void Completion::finish(Result<Buffer> outcome) {
  std::shared_ptr<Notifier> notifier;
  {
    const std::lock_guard lock(mutex_);
    MOTLEY_CHECK(!outcome_.has_value(), "an operation ended twice");
    outcome_ = std::move(outcome);
    notifier = std::move(notifier_);
  }
  changed_.notify_all();
  if (notifier != nullptr) notifier->notify();
}

void Completion::notify_when_done(std::shared_ptr<Notifier> notifier) {
  {
    const std::lock_guard lock(mutex_);
    if (!outcome_.has_value()) {
      notifier_ = std::move(notifier);
      return;
    }
  }
  notifier->notify();
}

bool Completion::done() const {
  const std::lock_guard lock(mutex_);
  return outcome_.has_value();
}

Result<Buffer> Completion::wait(Deadline deadline, const std::string& what) {
  const double given_s = deadline.left_s();
  std::unique_lock lock(mutex_);
  while (!changed_.wait_until(lock, deadline.time(), [&] { return outcome_.has_value(); })) {
    if (!deadline.passed()) continue;  // another rank of the group has made progress
    return nothing_came(what, given_s);
  }
  Result<Buffer> outcome = std::move(*outcome_);
  lock.unlock();
  if (!outcome.ok()) {
    return with_context(std::move(outcome).error(), fmt::format("waiting for {}", what));
  }
  return outcome;
}

}  // namespace motley
