// WorkerChannel: the stage process's end of the protocol (protocol/protocol.h).
//
// Takes over standard input and output: whatever else prints to standard output afterwards (a
// library's message, say) goes to standard error. When the launcher goes away (end of file) or asks
// to stop, the process exits at once, whatever its other threads do: nothing stays behind.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/json.h"
#include "base/result.h"
#include "protocol/launcher_channel.h"

namespace motley {

class WorkerChannel final : public LauncherChannel {
 public:
  // REQUIRES: only one exists in a process.
  WorkerChannel();
  ~WorkerChannel() override;
  WorkerChannel(const WorkerChannel&) = delete;
  WorkerChannel& operator=(const WorkerChannel&) = delete;

  [[nodiscard]] Result<Json> receive(Deadline deadline, const std::string& what) override;
  void send(const Json& event) override;

  // From now on sends make_beat() every `interval_s` from a thread of its own.
  void start_beats(double interval_s, std::function<Json()> make_beat);

 private:
  void read_lines(const std::stop_token& stop);

  int output_fd_;
  int wake_fds_[2];  // pipe: ends read_lines
  std::mutex output_mutex_;
  std::mutex input_mutex_;
  std::condition_variable input_changed_;
  std::deque<Json> input_;  // guarded by input_mutex_
  std::jthread reader_;
  std::mutex beat_mutex_;
  std::condition_variable_any beat_wake_;
  std::jthread beats_;
};

}  // namespace motley
