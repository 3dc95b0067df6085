#include "pipeline/execute/frame_receiver.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace motley {

FrameReceiver::FrameReceiver(bool beside) {
  if (beside) thread_ = std::thread([this] { work(); });
}

FrameReceiver::~FrameReceiver() {
  {
    const std::scoped_lock lock(mutex_);
    ending_ = true;
  }
  notifier_->notify();
  if (thread_.joinable()) thread_.join();
}

void FrameReceiver::expect(const Action& posted, PendingFrame frame, Read read) {
  const std::scoped_lock lock(mutex_);
  Entry& entry = entries_.emplace_back();
  entry.posted = posted;
  entry.frame = std::move(frame);
  entry.read = std::move(read);
  if (thread_.joinable()) entry.frame.notify_when_done(notifier_);
}

Result<FrameReceiver::Received> FrameReceiver::wait(const Action& posted, Deadline deadline) {
  std::unique_lock lock(mutex_);
  const auto it = std::ranges::find(entries_, posted, &Entry::posted);
  MOTLEY_CHECK(it != entries_.end(), "{} consumes what was not posted", to_text(posted));
  const bool is_mine = !std::exchange(it->taken, true);
  if (is_mine) {
    lock.unlock();
    Result<Received> outcome = carry_out(*it, deadline);
    lock.lock();
    it->outcome = std::move(outcome);
  } else {
    // The thread already has the frame and will not block.
    const double start_s = now_s();
    changed_.wait(lock, [&] { return it->outcome.has_value(); });
    if (it->outcome->ok()) {
      Received& received = it->outcome->value();
      received.wait_s = 0;
      received.read_s = now_s() - start_s;
    }
  }
  Result<Received> outcome = *std::move(it->outcome);
  entries_.erase(it);
  return outcome;
}

void FrameReceiver::work() {
  constexpr double kIdle_s = 3600;  // any period: a notification ends the wait
  while (true) {
    (void)notifier_->wait(Deadline::after_s(kIdle_s));
    std::unique_lock lock(mutex_);
    Entry* entry = nullptr;
    while (!ending_ && (entry = first_come()) != nullptr) {
      entry->taken = true;
      lock.unlock();
      Result<Received> outcome = carry_out(*entry, Deadline::after_s(0));
      lock.lock();
      entry->outcome = std::move(outcome);
      changed_.notify_all();
    }
    if (ending_) return;
  }
}

FrameReceiver::Entry* FrameReceiver::first_come() {
  const auto it = std::ranges::find_if(
      entries_, [](const Entry& entry) { return !entry.taken && entry.frame.done(); });
  return it == entries_.end() ? nullptr : &*it;
}

Result<FrameReceiver::Received> FrameReceiver::carry_out(Entry& entry, Deadline deadline) {
  const double start_s = now_s();
  MOTLEY_ASSIGN(Buffer buffer, entry.frame.wait(deadline));
  const double come_s = now_s();
  MOTLEY_TRY(entry.read(buffer.payload()));
  return Received{std::move(buffer), come_s - start_s, now_s() - come_s};
}

}  // namespace motley
