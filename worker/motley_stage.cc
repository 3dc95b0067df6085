// motley-stage: the worker. Started by `motley`, which sends it a job over standard input
// (protocol/protocol.h). It holds layers and computes; its death ends no other process.
#include <string>

#include <c10/core/InferenceMode.h>

#include "base/system/blas_core.h"
#include "base/system/standard_streams.h"
#include "base/system/system_cores.h"
#include "comm/make_transport.h"
#include "models/device/tensor_memory.h"
#include "models/kernels/torch_threads.h"
#include "models/layers/failure_of.h"
#include "plan/device_kinds.h"
#include "worker/check/data_job.h"
#include "worker/check/layer_checks.h"
#include "worker/check/libraries.h"
#include "worker/jobs.h"
#include "worker/serve.h"
#include "worker/train/train_job.h"

namespace motley {
namespace {

Result<void> run_job(Job job, WorkerChannel& channel, Activity& activity) {
  MOTLEY_TRY(check_device(job.device));
  // The launcher may not know the machine's cores.
  if (job.threads == 0) {
    const CoreSharers sharers{job.options.value("computing", 1), job.options.value("serving", 0)};
    job.threads = capabilities_of(job.device).computes
                      ? default_threads(sharers, has_own_memory(job.device), job.cpu_share)
                      : 1;
  }
  set_compute_threads(job.threads);
  // Layers compute their own gradients; autograd records nothing (models/layers/layer.h).
  const c10::InferenceMode no_recording;
  if (job.verb == "train") {
    channel.send({{"event", "arithmetic"}, {"text", processor_arithmetic()}});
    return run_train_job(job, channel, activity, check_layers);
  }
  if (job.verb == "profile") return run_profile_job(job, channel);
  if (job.verb == "probe") return run_probe_job(job, channel);
  if (job.verb == "allreduce") return run_allreduce_job(job, channel);
  if (job.verb == "doctor") return run_doctor_job(job, channel);
  if (job.verb == "data") return run_data_job(job, channel, activity.work());
  if (job.verb == "devices") return run_devices_job(job, channel);
  if (job.verb == "generate") return run_generate_job(job, channel, activity.work());
  return Error{ErrorCode::kInternal, "the launcher asks for '" + job.verb + "'",
               "this worker does not support it",
               "use the same version of Motley on every machine"};
}

}  // namespace
}  // namespace motley

int main(int argc, char** argv) {
  motley::open_standard_streams();
  motley::ignore_file_size_limit();
  motley::quiet_transports();
  motley::restart_for_better_blas(argv);
  if (argc > 1) return motley::explain_no_arguments("motley-stage", argv[1]);
  motley::reuse_tensor_memory();
  return motley::serve_launcher({motley::run_job, motley::failure_of});
}
