#include "cluster/launch/worker.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/check.h"
#include "base/system/files.h"
#include "cluster/launch/worker_command.h"
#include "cluster/lease/channel_patience.h"
#include "plan/cluster/joined_shell.h"

namespace motley {
namespace {

constexpr std::size_t kEventBytesMax = 4U << 20;
constexpr std::size_t kErrorLineBytesMax = 16U << 10;  // longer lines are cut, not refused
constexpr std::size_t kLastLines = 5;

// Reads at most one buffer from a non-blocking descriptor; closes it at the end of the stream.
// Empty = nothing available now.
std::string_view read_some(OwnedFd& fd, std::span<char> buffer) {
  const ssize_t bytes = ::read(fd.get(), buffer.data(), buffer.size());
  if (bytes > 0) return {buffer.data(), static_cast<std::size_t>(bytes)};
  const bool later = bytes < 0 && (errno == EAGAIN || errno == EINTR);
  if (!later) fd.reset();
  return {};
}

// A joined machine has the run's files below a folder of its own.
Job job_there(const WorkerSpec& spec) {
  Job job = spec.job;
  const auto joined = joined_shell(spec.machine.shell);
  if (!joined) return job;
  for (std::string* path : {&job.config.model.path, &job.config.model.init_from,
                            &job.config.data.path, &job.config.data.holdout_path}) {
    *path = path_there(*joined, *path);
  }
  return job;
}

}  // namespace

Worker::Worker(WorkerSpec spec, LineSink on_line)
    : spec_(std::move(spec)),
      on_line_(std::move(on_line)),
      events_(kEventBytesMax),
      errors_(kErrorLineBytesMax) {}

Result<void> Worker::open_log(const std::filesystem::path& log_folder) {
  if (log_folder.empty() || log_file_.open()) return {};
  const auto path = log_folder / fmt::format("{}.log", spec_.job.rank.value);
  MOTLEY_ASSIGN(log_file_, open_regular_file(path, O_WRONLY | O_CREAT | O_APPEND));
  return {};
}

Result<void> Worker::start(const std::filesystem::path& log_folder, double lease_s) {
  MOTLEY_TRY(open_log(log_folder));
  Result<Process> process =
      Process::start(worker_command(spec_.machine.shell, spec_.program, spec_.job.threads));
  if (!process) return with_context(std::move(process).error(), spec_.name);
  process_.emplace(std::move(process).value());
  running_ = true;
  to_start = false;
  heard_at_s = progress_at_s = now_s();
  spec_.job.lease_s = lease_s;
  input_.open(std::move(process_->input()));
  input_.send({{"job", job_to_json(job_there(spec_))}});
  return {};
}

void Worker::start_over(double at_s) {
  MOTLEY_CHECK(!running_ && !greeted_, "{} is still running", spec_.name);
  process_.reset();
  (void)events_.take_rest();
  to_start = true;
  start_at_s = at_s;
}

Result<std::vector<Json>> Worker::read_events() {
  std::array<char, 64 << 10> buffer;
  events_.add(read_some(process_->output(), buffer));
  std::vector<Json> events;
  if (failed) return (void)events_.take_rest(), events;
  while (const std::optional<std::string> line = events_.next()) {
    MOTLEY_TRY(take_line(*line, events));
  }
  if (events_.too_long()) {
    return protocol_error(fmt::format("a line of more than {} bytes", kEventBytesMax));
  }
  return events;
}

Result<void> Worker::take_line(const std::string& line, std::vector<Json>& events) {
  if (line.empty()) return {};
  Result<Json> event = parse_json(line, spec_.name);
  const Result<std::string> kind =
      event ? json_get<std::string>(*event, "event", spec_.name) : event.error();
  // Output of a remote shell's start-up files before the hello, or of the shell as it ends, must
  // not fail a run.
  if (!kind && (!greeted_ || has_sent_final_event_)) return log_line(line), Result<void>();
  if (!kind) return protocol_error(kind.error().cause);
  has_sent_final_event_ = *kind == "done" || *kind == "error";
  if (*kind == "hello") {
    MOTLEY_ASSIGN(const std::int64_t version,
                  json_get<std::int64_t>(*event, "protocol", spec_.name));
    if (version != kProtocolVersion) {
      return protocol_error(fmt::format("it has protocol version {}, this program has {}", version,
                                        kProtocolVersion));
    }
    greeted_ = true;
  } else if (!greeted_ && *kind != "error") {
    return protocol_error(fmt::format("its first event is '{}', not 'hello'", *kind));
  }
  events.push_back(std::move(event).value());
  return {};
}

Error Worker::protocol_error(const std::string& cause) const {
  return {ErrorCode::kPeer, fmt::format("{} violates the protocol", spec_.name), cause,
          "use the same version of Motley on every machine"};
}

bool Worker::take_heartbeat(const Json& beat) {
  const Result<std::int64_t> step = json_get<std::int64_t>(beat, "step", spec_.name);
  const Result<std::string> current_action = json_get<std::string>(beat, "doing", spec_.name);
  const Result<std::string> task = json_get<std::string>(beat, "task", spec_.name);
  const Result<std::int64_t> count = json_get<std::int64_t>(beat, "progress", spec_.name);
  if (step) activity.step = *step;
  if (current_action) activity.current_action = *current_action;
  if (task) activity.task = *task;
  take_bytes(beat);
  return count && std::exchange(progress, *count) != *count;
}

// After a task has ended, its last byte count is retained as its final progress.
void Worker::take_bytes(const Json& beat) {
  const auto bytes = beat.find("bytes");
  if (bytes == beat.end() || !bytes->is_array() || bytes->size() != 2) return;
  if (!bytes->at(0).is_number_unsigned() || !bytes->at(1).is_number_unsigned()) return;
  const ProgressBytes task{bytes->at(0).get<std::uint64_t>(), bytes->at(1).get<std::uint64_t>()};
  if (task.total > 0) task_bytes = task;
}

Result<void> Worker::take_unreached(const Json& event) {
  MOTLEY_ASSIGN(unreached, read_unreached_event(event, spec_.name));
  if (!unreached.empty()) was_unreached = unreached;
  return {};
}

void Worker::read_errors() {
  std::array<char, 16 << 10> buffer;
  errors_.add(read_some(process_->errors(), buffer));
  while (const std::optional<std::string> line = errors_.next()) log_line(*line);
  if (errors_.too_long() || !process_->errors().open()) {
    if (const std::string rest = errors_.take_rest(); !rest.empty()) log_line(rest);
  }
}

void Worker::log_line(const std::string& line) {
  if (log_file_.open()) {
    const std::string text = line + '\n';
    // One write per line, so that lines do not interleave. A full disk is reported elsewhere.
    [[maybe_unused]] const ssize_t written = ::write(log_file_.get(), text.data(), text.size());
  }
  // For the user: without control sequences.
  const std::string words = excerpt(line, kErrorLineBytesMax);
  last_lines_.push_back(words);
  if (last_lines_.size() > kLastLines) last_lines_.pop_front();
  on_line_(words);
}

double Worker::patience_s(double patience_s) const {
  return channel_patience_s(patience_s, is_ssh(spec_.machine.shell));
}

ProcessExit Worker::reap() {
  MOTLEY_CHECK(running_, "{} does not run", spec_.name);
  running_ = false;
  input_.close();
  return process_->reap();
}

void Worker::kill() {
  if (running_) process_->kill_group();
}

WorkerIdentity Worker::identity() const {
  return {.name = spec_.name,
          .machine = spec_.machine.name,
          .trains = spec_.job.verb == "train",
          .ssh = is_ssh(spec_.machine.shell),
          .greeted = greeted_};
}

Error Worker::death(const ProcessExit& exit) const {
  return describe_death(identity(), exit, activity, last_lines());
}

}  // namespace motley
