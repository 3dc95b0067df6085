// PlayedChannel: the channel between a worker's job and an emulated launcher in the same process.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <utility>

#include "base/json.h"
#include "comm/transport/comm_errors.h"
#include "protocol/launcher_channel.h"

namespace motley::testing {

class PlayedChannel final : public LauncherChannel {
 public:
  // `on_event` is called on the sending thread.
  explicit PlayedChannel(std::function<void(const Json& event)> on_event)
      : on_event_(std::move(on_event)) {}

  // Delivers a message from the launcher.
  void give(Json message) {
    const std::lock_guard lock(mutex_);
    messages_.push_back(std::move(message));
    changed_.notify_all();
  }

  // Ends all receives: no further message arrives.
  void close() {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    changed_.notify_all();
  }

  void send(const Json& event) override { on_event_(event); }

  Result<Json> receive(Deadline deadline, const std::string& what) override {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, deadline.time(), [&] { return is_closed_ || !messages_.empty(); });
    if (messages_.empty()) return nothing_came(what, 0);
    Json message = std::move(messages_.front());
    messages_.pop_front();
    return message;
  }

  [[nodiscard]] const ProgressClock& group_progress_clock() const override { return progress_; }

  [[nodiscard]] bool is_to_finish() const override { return false; }

  void outlive_launcher(std::function<std::uint64_t()> /*progress*/) override {}

  [[nodiscard]] bool is_launcher_lost() const override { return false; }

 private:
  const std::function<void(const Json& event)> on_event_;
  const ProgressClock progress_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Json> messages_;
  bool is_closed_ = false;
};

}  // namespace motley::testing
