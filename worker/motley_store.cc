// motley-store: the worker for its machine's run folder while no training runs. Started by
// `motley`, as motley-stage is. It does not link LibTorch, whose loading takes longer than all its
// work.
#include "base/system/standard_streams.h"
#include "comm/make_transport.h"
#include "worker/replication/store_job.h"
#include "worker/serve.h"

namespace motley {
namespace {

Result<void> run_job(const Job& job, WorkerChannel& channel, Activity& activity) {
  if (job.verb == "store") return run_store_job(job, channel, activity.work());
  return Error{ErrorCode::kInternal, "the launcher asks a machine's folder for '" + job.verb + "'",
               "motley-store does not support it",
               "use the same version of Motley on every machine"};
}

Error failure_of(const std::exception& thrown, const std::string& during) {
  return {ErrorCode::kInternal, "motley-store failed during " + during, thrown.what(),
          "see its log; if its machine has free memory, this is a bug: please report it"};
}

}  // namespace
}  // namespace motley

int main(int argc, char** argv) {
  motley::open_standard_streams();
  motley::ignore_file_size_limit();
  motley::quiet_transports();
  if (argc > 1) return motley::explain_no_arguments("motley-store", argv[1]);
  return motley::serve_launcher({motley::run_job, motley::failure_of});
}
