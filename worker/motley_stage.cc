// motley-stage: the worker. Started by `motley`, which tells it over standard input what to do
// (protocol/protocol.h). It holds layers and computes; when it dies, nothing else does.
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include <c10/core/InferenceMode.h>

#include "base/system/blas_core.h"
#include "base/system/privacy.h"
#include "base/system/standard_streams.h"
#include "base/system/system_cores.h"
#include "base/system/system_memory.h"
#include "comm/make_transport.h"
#include "models/kernels/torch_threads.h"
#include "models/layers/failure_of.h"
#include "pipeline/execute/activity.h"
#include "protocol/protocol.h"
#include "protocol/worker_channel.h"
#include "worker/allreduce_job.h"
#include "worker/doctor_job.h"
#include "worker/generate_job.h"
#include "worker/probe_job.h"
#include "worker/profile_job.h"
#include "worker/store/store_job.h"
#include "worker/train/train_job.h"

namespace motley {
namespace {

constexpr double kFirstMessage_s = 60;
constexpr double kBeatInterval_s = 0.25;

Result<void> run_job(const Job& job, WorkerChannel& channel, Activity& activity) {
  // Layers compute their own gradients; nothing is recorded (models/layers/layer.h).
  const c10::InferenceMode no_recording;
  if (job.verb == "train") return run_train_job(job, channel, activity);
  if (job.verb == "profile") return run_profile_job(job, channel);
  if (job.verb == "probe") return run_probe_job(job, channel);
  if (job.verb == "allreduce") return run_allreduce_job(job, channel);
  if (job.verb == "doctor") return run_doctor_job(job, channel);
  if (job.verb == "devices") return run_devices_job(job, channel);
  if (job.verb == "store") return run_store_job(job, channel, activity.work());
  if (job.verb == "generate") return run_generate_job(job, channel, activity.work());
  return Error{ErrorCode::kInternal, "the launcher asks for '" + job.verb + "'",
               "this worker does not know it", "use the same version of Motley everywhere"};
}

// A launcher that is gone passes nothing on to the rank's log, so a rank that trains writes its
// last words there itself.
std::function<void(const std::string&)> log_for_last_words(const Job& job) {
  if (job.verb != "train") return {};
  return [path = std::filesystem::path(job.run_dir) / "log" /
                 (std::to_string(job.rank.value) + ".log")](const std::string& words) {
    std::ofstream(path, std::ios::app) << words << '\n';
  };
}

Result<void> serve(WorkerChannel& channel, Activity& activity) {
  channel.send({{"event", "hello"}, {"pid", ::getpid()}, {"protocol", kProtocolVersion}});
  MOTLEY_ASSIGN(const Json message, channel.receive(Deadline::after_s(kFirstMessage_s), "the job"));
  MOTLEY_ASSIGN(Job job, job_from_json(message.value("job", Json::object()), "the job"));
  channel.start_beats(kBeatInterval_s, [&activity] {
    return Json{{"event", "beat"},
                {"step", activity.step()},
                {"doing", activity.words()},
                {"task", activity.work().words()},
                {"progress", activity.work().count()}};
  });
  if (job.lease_s > 0) channel.hold_lease(job.lease_s, log_for_last_words(job));
  MOTLEY_TRY(check_device(job.device));
  // The launcher need not know the machine's cores.
  if (job.threads == 0) {
    job.threads = job.virtual_speed ? 1 : default_threads(job.options.value("processes", 1));
  }
  set_compute_threads(job.threads);
  return run_job(job, channel, activity);
}

int run_worker() {
  keep_freed_memory();
  forbid_core_dumps();
  Activity activity;
  WorkerChannel channel;
  Result<void> served;
  try {
    served = serve(channel, activity);
  } catch (const std::exception& thrown) {
    served = failure_of(thrown, activity.words());
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

}  // namespace
}  // namespace motley

int main(int argc, char** argv) {
  motley::open_standard_streams();
  motley::outlive_file_limits();
  motley::quiet_transports();
  motley::restart_for_better_blas(argv);
  if (argc > 1) {
    std::fputs(
        "motley-stage is started by motley and takes no arguments; see motley train --help\n",
        stderr);
    return std::strcmp(argv[1], "--help") == 0 ? 0 : 2;
  }
  return motley::run_worker();
}
