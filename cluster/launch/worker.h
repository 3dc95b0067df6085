// Worker: one stage process as the launcher sees it: the process, its three streams and what it has
// said about itself. Mechanism only: what an event means for the group is WorkerGroup's matter.
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
#include "base/result.h"
#include "base/system/owned_fd.h"
#include "base/work_counter.h"
#include "cluster/launch/failure.h"
#include "cluster/launch/worker_group.h"
#include "cluster/lease/worker_input.h"
#include "cluster/process/cpu_quota.h"
#include "cluster/process/line_splitter.h"
#include "cluster/process/process.h"
#include "protocol/link_message.h"

namespace motley {

class Worker {
 public:
  using LineSink = std::function<void(const std::string& line)>;

  // on_line gets each line of the worker's stderr.
  Worker(WorkerSpec spec, LineSink on_line);

  // Opens its log, unless that is open. kCorrupt where something else than a file has its name. As
  // in WorkerGroupOptions.
  [[nodiscard]] Result<void> open_log(const std::filesystem::path& log_folder);
  // Starts the process, with its log open, and queues its job. Both as in WorkerGroupOptions.
  [[nodiscard]] Result<void> start(const std::filesystem::path& log_folder, double lease_s);
  // Forgets a process that has ended before it greeted: start() is to be called again.
  void start_over(double at_s);

  // Applies the machine's cpu_share to the process just started. An error says why that is not
  // possible; the worker is all right without it.
  [[nodiscard]] Result<void> limit_cpu();

  [[nodiscard]] WorkerInput& input() { return input_; }

  // Reads what has arrived on stdout, at most one buffer full, and returns the events in it. An
  // error when the worker does not keep to the protocol; nothing it says afterwards counts.
  [[nodiscard]] Result<std::vector<Json>> read_events();
  // Takes what a "beat" event says into `activity`, as far as it says it. Returns whether the
  // worker has got on since its last one.
  bool take_beat(const Json& beat);
  // Takes an "unreached" event.
  [[nodiscard]] Result<void> take_unreached(const Json& event);
  // Hands what has arrived on stderr to the log.
  void read_errors();

  // Whether there is, or can still be, something to read.
  [[nodiscard]] bool output_open() { return process_ && process_->output().open(); }

  [[nodiscard]] bool errors_open() { return process_ && process_->errors().open(); }

  // Collects the end of a process whose exit_fd() is readable.
  [[nodiscard]] ProcessExit reap();
  void kill();
  [[nodiscard]] Identity identity() const;
  // The error for having ended without a word.
  [[nodiscard]] Error death(const ProcessExit& exit) const;

  [[nodiscard]] const WorkerSpec& spec() const { return spec_; }

  [[nodiscard]] bool running() const { return running_; }

  [[nodiscard]] bool greeted() const { return greeted_; }  // its hello has come

  // The end of its stderr.
  [[nodiscard]] std::vector<std::string> last_lines() const {
    return {last_lines_.begin(), last_lines_.end()};
  }

  [[nodiscard]] Process& process() { return *process_; }

  // Kept by Starter.
  bool to_start = true;
  double start_at_s = 0;  // not before
  int tries = 0;          // that were turned away

  // What the worker has said so far; kept by WorkerGroup.
  WorkerActivity activity;
  WorkBytes task_bytes;          // of its last beat that told of a task's bytes
  std::int64_t progress = 0;     // of its last beat
  double got_on_at_s = now_s();  // when that last changed, or it took another step to be ready
  std::optional<std::string> address;
  std::vector<UnreachedPeer> unreached;      // as it has reported last
  std::vector<UnreachedPeer> was_unreached;  // the last report that named any
  bool done = false;
  bool failed = false;          // has reported an error, or broken the protocol
  double heard_at_s = now_s();  // of its last event

 private:
  [[nodiscard]] Result<void> take_line(const std::string& line, std::vector<Json>& events);
  [[nodiscard]] Error protocol_error(const std::string& cause) const;
  void log_line(const std::string& line);
  void take_bytes(const Json& beat);

  WorkerSpec spec_;
  LineSink on_line_;
  OwnedFd log_file_;
  std::optional<CpuQuota> quota_;  // removed after the process has gone
  std::optional<Process> process_;
  bool running_ = false;
  bool greeted_ = false;
  bool has_said_its_last_ = false;  // what comes now is its shell's
  WorkerInput input_;
  LineSplitter events_;
  LineSplitter errors_;
  std::deque<std::string> last_lines_;  // of stderr
};

}  // namespace motley
