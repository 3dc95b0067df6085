#include "pipeline/execute/frame_sender.h"

#include <fmt/format.h>

#include <utility>

#include "base/clock.h"

namespace motley {

FrameSender::FrameSender(const FrameLink& link, StallTimeout stall_timeout, bool beside)
    : link_(link), stall_timeout_(stall_timeout) {
  if (beside) thread_ = std::thread([this] { work(); });
}

FrameSender::~FrameSender() {
  {
    const std::scoped_lock lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Result<void> FrameSender::send(Frame frame) {
  if (!thread_.joinable()) return carry_out(frame);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return waiting_.size() < kWaitingMax || failed_; });
  if (failed_) return *failed_;
  waiting_.push_back(std::move(frame));
  lock.unlock();
  changed_.notify_all();
  return {};
}

Result<void> FrameSender::finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return (waiting_.empty() && !filling_) || failed_; });
  if (failed_) return *failed_;
  return reclaim(/*wait_for_all=*/true);
}

std::optional<Error> FrameSender::failure() {
  const std::scoped_lock lock(mutex_);
  return failed_;
}

void FrameSender::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ending_ || !waiting_.empty(); });
    if (ending_) return;
    const Frame frame = std::move(waiting_.front());
    waiting_.pop_front();
    filling_ = true;
    lock.unlock();
    const Result<void> outcome = carry_out(frame);
    lock.lock();
    filling_ = false;
    if (!outcome.ok()) {
      failed_ = outcome.error();
      waiting_.clear();
    }
    changed_.notify_all();
    if (failed_) return;
  }
}

Result<void> FrameSender::carry_out(const Frame& frame) {
  Buffer buffer = buffers_.take(frame.bytes_max);
  MOTLEY_ASSIGN(const std::size_t bytes, frame.write(buffer.payload_space()));
  buffer.set_payload_bytes(bytes);
  MOTLEY_TRY(reclaim(/*wait_for_all=*/false));
  sent_.push_back({link_.send(frame.to, frame.id, std::move(buffer)),
                   fmt::format("rank {} to receive the {}", frame.to.value, to_words(frame.id))});
  return {};
}

Result<void> FrameSender::reclaim(bool wait_for_all) {
  std::size_t kept = 0;
  for (Sent& sent : sent_) {
    if (!wait_for_all && !sent.pending.done()) {
      std::swap(sent_[kept++], sent);
      continue;
    }
    MOTLEY_ASSIGN(Buffer buffer, sent.pending.wait(stall_timeout_.deadline(), sent.words));
    buffers_.give(std::move(buffer));
  }
  sent_.resize(kept);
  return {};
}

}  // namespace motley
