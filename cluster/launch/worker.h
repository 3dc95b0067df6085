// Worker: one stage process as the launcher sees it: the process, its three streams and what it has
// said about itself. Mechanism only: what an event means for the group is WorkerGroup's matter.
#pragma once

#include <deque>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/result.h"
#include "cluster/launch/cpu_quota.h"
#include "cluster/launch/failure.h"
#include "cluster/launch/line_splitter.h"
#include "cluster/launch/process.h"
#include "cluster/launch/worker_group.h"

namespace motley {

class Worker {
 public:
  using LineSink = std::function<void(const std::string& line)>;

  // on_line gets each line of the worker's stderr.
  Worker(WorkerSpec spec, LineSink on_line);

  // Starts the process and queues its job. `log_folder` as in WorkerGroupOptions.
  [[nodiscard]] Result<void> start(const std::filesystem::path& log_folder);

  // Applies the machine's cpu_share to the process just started. An error says why that is not
  // possible; the worker is all right without it.
  [[nodiscard]] Result<void> limit_cpu();

  // Queues one message; flush() writes as much as the pipe takes, so a worker that does not read
  // cannot hold us up. Does nothing once the input is closed.
  void send(const Json& message);
  void flush();

  [[nodiscard]] bool has_queued() const { return !queued_.empty(); }

  void close_input();

  // Reads what has arrived on stdout, at most one buffer full, and returns the events in it. An
  // error when the worker does not keep to the protocol; nothing it says afterwards counts.
  [[nodiscard]] Result<std::vector<Json>> read_events();
  // Hands what has arrived on stderr to the log.
  void read_errors();

  // Whether there is, or can still be, something to read.
  [[nodiscard]] bool output_open() { return process_ && process_->output().open(); }

  [[nodiscard]] bool errors_open() { return process_ && process_->errors().open(); }

  // Collects the end of a process whose exit_fd() is readable.
  [[nodiscard]] ProcessExit reap();
  void kill();
  // The error for having ended without a word.
  [[nodiscard]] Error death(const ProcessExit& exit) const;

  [[nodiscard]] const WorkerSpec& spec() const { return spec_; }

  [[nodiscard]] bool running() const { return running_; }

  [[nodiscard]] Process& process() { return *process_; }

  // What the worker has said so far; kept by WorkerGroup.
  Activity activity;
  std::optional<std::string> address;
  bool done = false;
  bool failed = false;          // has reported an error, or broken the protocol
  double heard_at_s = now_s();  // of its last event

 private:
  [[nodiscard]] Result<void> take_line(const std::string& line, std::vector<Json>& events);
  [[nodiscard]] Error protocol_error(const std::string& cause) const;
  void log_line(const std::string& line);

  WorkerSpec spec_;
  LineSink on_line_;
  std::ofstream log_file_;
  std::optional<CpuQuota> quota_;  // removed after the process has gone
  std::optional<Process> process_;
  bool running_ = false;
  bool greeted_ = false;  // its hello has come
  std::string queued_;    // for stdin
  LineSplitter events_;
  LineSplitter errors_;
  std::deque<std::string> last_lines_;  // of stderr
};

}  // namespace motley
