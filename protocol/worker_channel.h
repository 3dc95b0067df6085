// WorkerChannel: the stage process's end of the protocol (protocol/protocol.h).
//
// Takes over standard input and output: other output to standard output (such as a library's
// message) is redirected to standard error. When the launcher requests a stop, the process exits at
// once, whatever its other threads do: no worker is left over. The launcher is lost at the end of
// file, and when the lease expires: one on a machine that was cut off or lost its power sends no
// end of file, so it counts as gone after a time without messages. The process then exits at once
// too, unless outlive_launcher() gave it the time to save.
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

// How long a process may outlive its launcher.
struct SavingTime {
  double stall_s = 60;   // without progress
  double total_s = 600;  // in all
};

class WorkerChannel final : public LauncherChannel {
 public:
  // REQUIRES: the only one in the process.
  explicit WorkerChannel(SavingTime saving_time = {});
  ~WorkerChannel() override;
  WorkerChannel(const WorkerChannel&) = delete;
  WorkerChannel& operator=(const WorkerChannel&) = delete;

  [[nodiscard]] Result<Json> receive(Deadline deadline, const std::string& what) override;
  void send(const Json& event) override;

  [[nodiscard]] const ProgressClock& group_progress_clock() const override {
    return group_progress_clock_;
  }

  [[nodiscard]] bool is_to_finish() const override { return is_to_finish_.load(); }

  // The process then ends after its SavingTime. Time in which it was itself stopped does not count.
  // REQUIRES: called at most once.
  void outlive_launcher(std::function<std::uint64_t()> progress) override;

  [[nodiscard]] bool is_launcher_lost() const override { return lost_status_.load() != 0; }

  // The exit status of a process without launcher; 0: it has one.
  [[nodiscard]] int lost_status() const { return lost_status_.load(); }

  // From now on the launcher counts as lost (kLeaseExpiredStatus) once the process has listened for
  // `lease_s` seconds without a message from it; time in which the process was itself stopped does
  // not count. It reports the loss on standard error if that does not block, and to `on_lost`,
  // which is called on another thread and has kLastWords_s to finish if the process then exits.
  // REQUIRES: called at most once.
  void start_lease(double lease_s, std::function<void(const std::string& words)> on_lost);

  // From now on sends make_heartbeat() every `interval_s` from a separate thread.
  void start_heartbeats(double interval_s, std::function<Json()> make_heartbeat);

 private:
  static constexpr double kLastWords_s = 1;

  void read_lines(const std::stop_token& stop);
  // Takes what the launcher has sent; false at the end of file.
  bool read_block(std::string& partial);
  void take_line(std::string_view line);
  void renew_lease(const Json& lease);
  // Exits, or returns if the process is to outlive the launcher.
  void lose_launcher(int status, const std::string& words);
  // Exits if the time to save has passed. elapsed_s: since the last call.
  void check_saving(double elapsed_s);

  const SavingTime saving_time_;
  int output_fd_;
  int wake_fds_[2];  // pipe: ends read_lines
  std::mutex output_mutex_;
  std::mutex input_mutex_;
  std::condition_variable input_changed_;
  std::deque<Json> input_;                           // guarded by input_mutex_
  std::function<void(const std::string&)> on_lost_;  // set before lease_s_
  std::atomic<double> lease_s_{0};                   // 0 = none
  std::function<std::uint64_t()> progress_;          // set before outlives_
  std::atomic<bool> outlives_{false};
  std::atomic<int> lost_status_{0};
  std::uint64_t saving_count_ = 0;  // last seen of progress_; used by the reader, as the next two
  double saving_stall_s_ = 0;       // since it changed
  double saving_s_ = 0;             // since the launcher was lost
  std::atomic<bool> is_to_finish_{false};
  ProgressClock group_progress_clock_;
  std::uint64_t group_count_ = 0;  // of the last lease; used by the reader
  std::jthread reader_;
  std::mutex heartbeat_mutex_;
  std::condition_variable_any heartbeat_wake_;
  std::jthread heartbeats_;
};

}  // namespace motley
