#include "comm/transport/pending.h"

#include <fmt/format.h>

#include "base/check.h"
#include "comm/transport/comm_errors.h"

namespace motley {

void Bell::ring() {
  {
    const std::lock_guard lock(mutex_);
    rung_ = true;
  }
  changed_.notify_all();
}

bool Bell::wait(Deadline deadline) {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_until(lock, deadline.time(), [&] { return rung_; })) {
    if (deadline.passed()) return false;
  }
  rung_ = false;
  return true;
}

void Completion::finish(Result<Buffer> outcome) {
  std::shared_ptr<Bell> bell;
  {
    const std::lock_guard lock(mutex_);
    MOTLEY_CHECK(!outcome_.has_value(), "an operation ended twice");
    outcome_ = std::move(outcome);
    bell = std::move(bell_);
  }
  changed_.notify_all();
  if (bell != nullptr) bell->ring();
}

void Completion::tell(std::shared_ptr<Bell> bell) {
  {
    const std::lock_guard lock(mutex_);
    if (!outcome_.has_value()) {
      bell_ = std::move(bell);
      return;
    }
  }
  bell->ring();
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
