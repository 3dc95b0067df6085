// WorkerChannel: the stage process's end of the protocol (protocol/protocol.h).
//
// Takes over standard input and output: other output to standard output (such as a library's
// message) is redirected to standard error. When the launcher ends (end of file) or requests a
// stop, the process exits at once, whatever its other threads do: no worker is left over. The same
// happens when its lease expires: a launcher on a machine that was cut off or lost its power sends
// no end of file, so it counts as gone after a time without messages.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>

#include "base/clock.h"
#include "base/json.h"
#include "base/result.h"
#include "protocol/launcher_channel.h"

namespace motley {

class WorkerChannel final : public LauncherChannel {
 public:
  // REQUIRES: the only one in the process.
  WorkerChannel();
  ~WorkerChannel() override;
  WorkerChannel(const WorkerChannel&) = delete;
  WorkerChannel& operator=(const WorkerChannel&) = delete;

  [[nodiscard]] Result<Json> receive(Deadline deadline, const std::string& what) override;
  void send(const Json& event) override;

  [[nodiscard]] const ProgressClock& group_progress_clock() const override {
    return group_progress_clock_;
  }

  [[nodiscard]] bool is_to_finish() const override { return is_to_finish_.load(); }

  // From now on the process ends (kLeaseExpiredStatus) once it has listened for `lease_s` seconds
  // without a message from the launcher; time in which it was itself stopped does not count. It
  // reports this on standard error if that does not block, and to `on_lease_expired`, which is
  // called on another thread and has kLastWords_s to finish. REQUIRES: called at most once.
  void start_lease(double lease_s, std::function<void(const std::string& words)> on_lease_expired);

  // From now on sends make_heartbeat() every `interval_s` from a separate thread.
  void start_heartbeats(double interval_s, std::function<Json()> make_heartbeat);

 private:
  static constexpr double kLastWords_s = 1;

  void read_lines(const std::stop_token& stop);
  void take_line(std::string_view line);
  void renew_lease(const Json& lease);
  [[noreturn]] void expire_lease(double lease_s);

  int output_fd_;
  int wake_fds_[2];  // pipe: ends read_lines
  std::mutex output_mutex_;
  std::mutex input_mutex_;
  std::condition_variable input_changed_;
  std::deque<Json> input_;                                    // guarded by input_mutex_
  std::function<void(const std::string&)> on_lease_expired_;  // set before lease_s_
  std::atomic<double> lease_s_{0};                            // 0 = none
  std::atomic<bool> is_to_finish_{false};
  ProgressClock group_progress_clock_;
  std::uint64_t group_count_ = 0;  // of the last lease; used by the reader
  std::jthread reader_;
  std::mutex heartbeat_mutex_;
  std::condition_variable_any heartbeat_wake_;
  std::jthread heartbeats_;
};

}  // namespace motley
