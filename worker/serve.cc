#include "worker/serve.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <utility>

#include "base/json.h"
#include "base/system/privacy.h"
#include "base/system/system_memory.h"

namespace motley {
namespace {

constexpr double kFirstMessage_s = 60;
constexpr double kBeatInterval_s = 0.25;

// A launcher that is gone passes nothing on to the rank's log, so a rank that trains writes its
// last words there itself.
std::function<void(const std::string&)> log_for_last_words(const Job& job) {
  if (job.verb != "train") return {};
  return [path = std::filesystem::path(job.run_dir) / "log" /
                 (std::to_string(job.rank.value) + ".log")](const std::string& words) {
    std::ofstream(path, std::ios::app) << words << '\n';
  };
}

Json bytes_json(const WorkBytes& bytes) {
  return Json{bytes.done, bytes.total};
}

Result<void> serve(const WorkerTrade& trade, WorkerChannel& channel, Activity& activity) {
  channel.send({{"event", "hello"}, {"pid", ::getpid()}, {"protocol", kProtocolVersion}});
  MOTLEY_ASSIGN(const Json message, channel.receive(Deadline::after_s(kFirstMessage_s), "the job"));
  MOTLEY_ASSIGN(Job job, job_from_json(message.value("job", Json::object()), "the job"));
  channel.start_beats(kBeatInterval_s, [&activity] {
    return Json{{"event", "beat"},
                {"step", activity.step()},
                {"doing", activity.words()},
                {"task", activity.work().words()},
                {"progress", activity.work().count()},
                {"bytes", bytes_json(activity.work().bytes())}};
  });
  if (job.lease_s > 0) channel.hold_lease(job.lease_s, log_for_last_words(job));
  return trade.run_job(std::move(job), channel, activity);
}

}  // namespace

int serve_launcher(const WorkerTrade& trade) {
  keep_freed_memory();
  forbid_core_dumps();
  Activity activity;
  WorkerChannel channel;
  Result<void> served;
  try {
    served = serve(trade, channel, activity);
  } catch (const std::exception& thrown) {
    served = trade.failure_of(thrown, activity.words());
  }
  if (!served.ok()) {
    Json event = error_to_json(served.error());
    event["event"] = "error";
    channel.send(event);
    return static_cast<int>(served.error().code);
  }
  channel.send({{"event", "done"}, {"peak_bytes", peak_resident_bytes()}});
  return 0;
}

int explain_no_arguments(const std::string& program, const std::string& first) {
  fmt::print(stderr, "{} is started by motley and takes no arguments; see motley train --help\n",
             program);
  return first == "--help" ? 0 : static_cast<int>(ErrorCode::kUsage);
}

}  // namespace motley
