#include "worker/serve.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "base/json.h"
#include "base/system/files.h"
#include "base/system/owned_fd.h"
#include "base/system/privacy.h"
#include "base/system/system_memory.h"

namespace motley {
namespace {

constexpr double kFirstMessage_s = 60;
constexpr double kHeartbeatInterval_s = 0.25;

// A lost launcher no longer copies the worker's standard error to the rank's log, so a training
// rank writes its last message to the log itself.
std::function<void(const std::string&)> log_for_last_words(const Job& job) {
  if (job.verb != "train") return {};
  return [path = std::filesystem::path(job.run_dir) / "log" /
                 (std::to_string(job.rank.value) + ".log")](const std::string& words) {
    const std::string text = words + '\n';
    // If this fails, standard error still has the message.
    const Result<OwnedFd> log = open_regular_file(path, O_WRONLY | O_CREAT | O_APPEND);
    if (!log.ok()) return;
    [[maybe_unused]] const ssize_t written = ::write(log->get(), text.data(), text.size());
  };
}

Json bytes_json(const ProgressBytes& bytes) {
  return Json{bytes.done, bytes.total};
}

Result<void> serve(const WorkerRole& worker_role, WorkerChannel& channel, Activity& activity) {
  channel.send({{"event", "hello"}, {"pid", ::getpid()}, {"protocol", kProtocolVersion}});
  MOTLEY_ASSIGN(const Json message, channel.receive(Deadline::after_s(kFirstMessage_s), "the job"));
  MOTLEY_ASSIGN(Job job, job_from_json(message.value("job", Json::object()), "the job"));
  channel.start_heartbeats(kHeartbeatInterval_s, [&activity] {
    return Json{{"event", "beat"},
                {"step", activity.step()},
                {"doing", activity.words()},
                {"task", activity.work().words()},
                {"progress", activity.work().count()},
                {"bytes", bytes_json(activity.work().bytes())}};
  });
  if (job.lease_s > 0) channel.start_lease(job.lease_s, log_for_last_words(job));
  return worker_role.run_job(std::move(job), channel, activity);
}

Error error_of(const WorkerRole& worker_role,
               const std::exception& thrown,
               const Activity& activity) {
  const auto* const refused = dynamic_cast<const std::system_error*>(&thrown);
  if (refused == nullptr || refused->code() != std::errc::resource_unavailable_try_again) {
    return worker_role.failure_of(thrown, activity.words());
  }
  return {ErrorCode::kInternal, "cannot start another thread", thrown.what(),
          "raise the limit of processes (ulimit -u, or the container's)"};
}

// Sends the event if the channel could not be created, which redirects standard output before it
// fails.
void say_without_channel(const OwnedFd& output, const Json& event) {
  const std::string line =
      fmt::format("\n{}\n", event.dump(-1, ' ', false, Json::error_handler_t::replace));
  [[maybe_unused]] const ssize_t written = ::write(output.get(), line.data(), line.size());
}

// Exits at once if the launcher is lost: the next one waits for this process, and what it saved is
// on the disk.
void leave_without_launcher(const std::optional<WorkerChannel>& channel) {
  if (channel && channel->is_launcher_lost()) std::_Exit(channel->lost_status());
}

}  // namespace

int serve_launcher(const WorkerRole& worker_role) {
  keep_freed_memory();
  forbid_core_dumps();
  Activity activity;
  OwnedFd output(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  std::optional<WorkerChannel> channel;
  Result<void> served;
  try {
    channel.emplace();
    output.reset();
    served = serve(worker_role, *channel, activity);
  } catch (const std::exception& thrown) {
    served = error_of(worker_role, thrown, activity);
  }
  if (!served.ok()) {
    Json event = error_to_json(served.error());
    event["event"] = "error";
    if (channel) {
      channel->send(event);
    } else {
      say_without_channel(output, event);
    }
    leave_without_launcher(channel);
    return static_cast<int>(served.error().code);
  }
  channel->send({{"event", "done"}, {"peak_bytes", peak_resident_bytes()}});
  leave_without_launcher(channel);
  return 0;
}

int explain_no_arguments(const std::string& program, const std::string& first) {
  fmt::print(stderr, "{} is started by motley and takes no arguments; see motley train --help\n",
             program);
  return first == "--help" ? 0 : static_cast<int>(ErrorCode::kUsage);
}

}  // namespace motley
