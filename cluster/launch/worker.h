// Worker: one stage process as the launcher sees it: the process, its three streams and its
// reported state. Mechanism only: WorkerGroup decides what an event means for the group.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/process/line_splitter.h"
#include "base/process/process.h"
#include "base/progress_counter.h"
#include "base/result.h"
#include "base/system/owned_fd.h"
#include "cluster/launch/failure.h"
#include "cluster/launch/worker_group.h"
#include "cluster/lease/worker_input.h"
#include "protocol/link_message.h"

namespace motley {

class Worker {
 public:
  using LineSink = std::function<void(const std::string& line)>;

  // `on_line` receives each line of the worker's stderr.
  Worker(WorkerSpec spec, LineSink on_line);

  // Opens the log file, unless it is open. kCorrupt if its path is not a regular file. `log_folder`
  // as in WorkerGroupOptions.
  [[nodiscard]] Result<void> open_log(const std::filesystem::path& log_folder);
  // Opens the log, starts the process and queues its job. `log_folder` as in WorkerGroupOptions.
  [[nodiscard]] Result<void> start(const std::filesystem::path& log_folder, double lease_s);
  // Resets a process that ended before its hello, so that start() can be called again after `at_s`.
  void start_over(double at_s);

  [[nodiscard]] WorkerInput& input() { return input_; }

  // Reads the available stdout, at most one buffer, and returns its events. An error if the worker
  // violates the protocol; after Worker::failed is set, its output is discarded.
  [[nodiscard]] Result<std::vector<Json>> read_events();
  // Copies the members that a heartbeat has into `activity`. Returns whether the worker made
  // progress since the previous one.
  bool take_heartbeat(const Json& beat);
  // Stores the peers of an "unreached" event.
  [[nodiscard]] Result<void> take_unreached(const Json& event);
  // Copies the available stderr to the log.
  void read_errors();

  // Whether the stream is still open.
  [[nodiscard]] bool output_open() { return process_ && process_->output().open(); }

  [[nodiscard]] bool errors_open() { return process_ && process_->errors().open(); }

  // The longest silence on its channel, in either direction, that ends nothing. `patience_s` as in
  // WorkerGroupOptions.
  [[nodiscard]] double patience_s(double patience_s) const;

  // Collects the exit status of a process whose exit_fd() is readable.
  [[nodiscard]] ProcessExit reap();
  void kill();
  [[nodiscard]] WorkerIdentity identity() const;
  // The error for ending without an error event.
  [[nodiscard]] Error death(const ProcessExit& exit) const;

  [[nodiscard]] const WorkerSpec& spec() const { return spec_; }

  [[nodiscard]] bool running() const { return running_; }

  [[nodiscard]] bool greeted() const { return greeted_; }  // its hello has arrived

  // The end of its stderr.
  [[nodiscard]] std::vector<std::string> last_lines() const {
    return {last_lines_.begin(), last_lines_.end()};
  }

  [[nodiscard]] Process& process() { return *process_; }

  // Maintained by Starter.
  bool to_start = true;
  double start_at_s = 0;  // earliest start time
  int tries = 0;          // rejected attempts

  // The worker's reported state; maintained by WorkerGroup.
  WorkerActivity activity;
  ProgressBytes task_bytes;        // of its last heartbeat with a task's byte count
  std::int64_t progress = 0;       // of its last heartbeat
  double progress_at_s = now_s();  // time of its last progress
  std::optional<std::string> address;
  std::vector<UnreachedPeer> unreached;      // its last report
  std::vector<UnreachedPeer> was_unreached;  // its last non-empty report
  bool done = false;
  bool failed = false;            // has reported an error or violated the protocol
  double heard_at_s = now_s();    // time of its last event
  bool silence_reported = false;  // since then

 private:
  [[nodiscard]] Result<void> take_line(const std::string& line, std::vector<Json>& events);
  [[nodiscard]] Error protocol_error(const std::string& cause) const;
  void log_line(const std::string& line);
  void take_bytes(const Json& beat);

  WorkerSpec spec_;
  LineSink on_line_;
  OwnedFd log_file_;
  std::optional<Process> process_;
  bool running_ = false;
  bool greeted_ = false;
  bool has_sent_final_event_ = false;  // further output is the shell's
  WorkerInput input_;
  LineSplitter events_;
  LineSplitter errors_;
  std::deque<std::string> last_lines_;  // of stderr
};

}  // namespace motley
