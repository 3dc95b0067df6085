#include "cluster/prepare/prepare_run.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/system/files.h"
#include "checkpoint/checkpoint.h"
#include "cluster/join/head/send_run_files.h"
#include "cluster/launch/workers.h"
#include "cluster/prepare/ask_for_data.h"
#include "cluster/prepare/check_request.h"
#include "cluster/prepare/claim_folder.h"
#include "cluster/prepare/deliver_shards.h"
#include "cluster/prepare/find_shards.h"
#include "cluster/prepare/plan_run.h"
#include "cluster/prepare/predict.h"
#include "cluster/prepare/run_start.h"
#include "cluster/run/checkpoint_committer.h"

namespace motley {
namespace {

// Writes the files of a run that passed all checks, and moves its shards. REQUIRES: the folder is
// locked.
Result<ReadyRun> store_run(const TrainingRequest& request,
                           const ClaimedFolder& claimed,
                           const FoundShards& found,
                           const RunStart& start,
                           PlannedRun planned,
                           const Log& log) {
  const RunFolder& folder = claimed.folder;
  const std::string launch = claimed.lock->launch();
  // Pruning now frees space before the next save, for example after checkpoint.keep was lowered.
  // The newest checkpoint was verified, and all checks of the run have passed.
  MOTLEY_TRY(
      prune_to(folder.dir(),
               retained_with(start.steps.first - 1, list_checkpoints(folder.dir()), planned.config),
               launch));
  MOTLEY_ASSIGN(std::string id, folder.ensure_run_id(found.stores.run));
  MOTLEY_TRY(folder.write_config(planned.config));
  MOTLEY_TRY(folder.write_plan(planned.plan));
  write_prediction(planned, start.planning.options, folder, log);
  MOTLEY_ASSIGN(RunShards shards, deliver_shards(request, planned, found, launch, log));
  return ReadyRun{.planned = std::move(planned),
                  .steps = start.steps,
                  .counted_data = start.counted_data,
                  .resumed = start.resumed,
                  .folder = folder,
                  .id = std::move(id),
                  .launch = launch,
                  .shards = std::move(shards)};
}

}  // namespace

Result<Launch> prepare_run(const TrainingRequest& request, Log& log) {
  MOTLEY_ASSIGN(CheckedRequest checked, check_request(request, log));
  MOTLEY_ASSIGN(ClaimedFolder claimed, claim_folder(request, checked, log));
  checked.resumes = claimed.resumes;
  const Config sent = with_absolute_paths(request.planning.config);
  MOTLEY_TRY(send_run_files(checked.planning.cluster, checked.machines.names, sent,
                            request.display.line, log));
  MOTLEY_ASSIGN(const FoundShards found, find_shards(request, checked, claimed, log));
  const RunFolder& folder = claimed.folder;
  if (request.resume && !found.resumes) {
    log.info(
        fmt::format("{} has no checkpoint yet: the run starts with step 1", folder.dir().string()));
  }
  const TrainConfig& train = request.planning.config.train;
  if (train.epochs > 0 && train.steps == 0 && !checked.data) {
    MOTLEY_ASSIGN(checked.data, ask_for_data(request, checked, log));
  }
  MOTLEY_ASSIGN(const RunStart start, start_of_run(request, checked, found, log));
  if (!request.dry_run) MOTLEY_TRY(check_can_write(folder.config_path()));
  if (!asks_for_shards(request, checked.machines)) {
    MOTLEY_TRY(check_machines(request, start.planning, checked.machines));
  }
  MOTLEY_ASSIGN(PlannedRun planned, plan_run(request, start, claimed, log));
  if (request.dry_run) {
    return Launch{{.planned = std::move(planned),
                   .steps = start.steps,
                   .resumed = start.resumed,
                   .folder = folder},
                  nullptr};
  }
  MOTLEY_ASSIGN(ReadyRun run, store_run(request, claimed, found, start, std::move(planned), log));
  return Launch{std::move(run), std::move(claimed.lock)};
}

}  // namespace motley
