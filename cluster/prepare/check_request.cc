#include "cluster/prepare/check_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/system/files.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/replication/checkpoint_metadata.h"
#include "cluster/launch/transport_choice.h"
#include "cluster/launch/workers.h"
#include "cluster/planning/check_plan.h"
#include "cluster/planning/resolve_plan.h"
#include "cluster/replication/machine_stores.h"
#include "cluster/run/left_save.h"
#include "record/report_text.h"
#include "record/run_folder.h"
#include "run_config/config_io.h"

namespace motley {
namespace {

// Adds the key data.path to an error that names only the file.
Error with_key_of_path(const Error& error) {
  return error.key.empty() ? with_key(with_context(error, "data.path"), "data.path") : error;
}

// The stage with the first layers reads the data, all stages read the initial weights. If all
// stages start on this machine, both must exist here, so that a mistake is found before profiling.
// Nothing if they start elsewhere. `remarks`, if given, gets the warnings that a worker reports
// otherwise.
Result<std::optional<SeenData>> check_data(const PlanRequest& request,
                                           const ModelSpec& model,
                                           bool resumes,
                                           const Log* remarks) {
  for (const Machine& machine : request.cluster.machines) {
    if (!machine.shell.empty()) return std::optional<SeenData>();
  }
  const Config config = with_absolute_paths(request.config);
  const auto source = open_source(config.data, model.sample, config.train.seed);
  if (!source.ok()) return with_key_of_path(source.error());
  if (!config.model.init_from.empty() && !resumes) {
    MOTLEY_ASSIGN(const auto weights, CheckpointReader::open(config.model.init_from));
  }
  if (remarks != nullptr && !resumes) {
    for (const std::string& line : training_remarks(**source, config.train)) remarks->warn(line);
  }
  return std::optional(SeenData{(*source)->identity(), (*source)->train_samples()});
}

// For a run whose length is given in epochs, if its data is not checked here: nothing if it cannot
// be read here.
std::optional<SeenData> data_to_count(const PlanRequest& request, const ModelSpec& model) {
  const Config config = with_absolute_paths(request.config);
  if (config.train.epochs <= 0) return std::nullopt;
  const auto source = open_source(config.data, model.sample, config.train.seed);
  if (!source.ok()) return std::nullopt;
  return SeenData{(*source)->identity(), (*source)->train_samples()};
}

// A simulated run reads no data and trains nothing, so there is nothing to save or resume.
Result<void> check_simulated_run(const TrainingRequest& request, const Log& log) {
  if (request.resume) {
    return Error{ErrorCode::kUsage, "a run on virtual devices cannot be resumed",
                 "it trains nothing and saves no checkpoints",
                 "start it in another folder with --run"};
  }
  log.info(
      fmt::format("{}; no data is read, no loss computed, no checkpoint saved", kVirtualNotice));
  log.info(kSimulatedLinksNotice);
  return {};
}

Result<bool> resumes_from_checkpoint(const TrainingRequest& request, const RunMachines& machines) {
  if (!request.resume) return false;
  if (machines.may_be_distributed && !request.dry_run) return true;  // find_shards() determines it
  const RunFolder folder(request.planning.config.run.dir);
  MOTLEY_ASSIGN(const bool is_run, path_exists(folder.config_path()));
  if (!is_run || !list_checkpoints(folder.dir()).empty()) return true;
  if (!request.dry_run && left_save(folder.dir())) return true;
  MOTLEY_TRY(require_all_count(folder.dir()));
  return false;
}

RunMachines run_machines(const TrainingRequest& request, const PlanningInput& planning) {
  const auto& plan = request.planning.plan;
  RunMachines machines;
  machines.names = plan ? machines_in_use(*plan)
                        : machines_to_plan_with(planning.cluster, planning.options.pins);
  const auto checkpoints = list_checkpoints(request.planning.config.run.dir);
  machines.may_be_distributed =
      capabilities_of(planning.cluster).keeps_state &&
      (may_have_own_folders(planning.cluster, machines.names) ||
       std::ranges::any_of(checkpoints, is_partial_copy, &CheckpointInfo::folder));
  return machines;
}

}  // namespace

Result<CheckedRequest> check_request(const TrainingRequest& request, const Log& log) {
  CheckedRequest checked;
  MOTLEY_ASSIGN(checked.planning, resolve_plan(request.planning));
  checked.machines = run_machines(request, checked.planning);
  MOTLEY_ASSIGN(checked.resumes, resumes_from_checkpoint(request, checked.machines));
  if (!capabilities_of(request.planning.cluster).computes) {
    MOTLEY_TRY(check_simulated_run(request, log));
    checked.data = data_to_count(request.planning, checked.planning.model);
    return checked;
  }
  if (!checked.resumes) {
    MOTLEY_TRY(check_initial_weights_here(request.planning.config, request.origins));
  }
  MOTLEY_ASSIGN(checked.data, check_data(request.planning, checked.planning.model, checked.resumes,
                                         request.dry_run ? &log : nullptr));
  if (!checked.data) checked.data = data_to_count(request.planning, checked.planning.model);
  return checked;
}

Result<void> check_machines(const TrainingRequest& request,
                            const PlanningInput& planning,
                            const RunMachines& machines) {
  MOTLEY_ASSIGN([[maybe_unused]] const auto transport,
                choose_transport(planning.cluster, machines.names, request.planning.config.comm));
  return check_usable(planning.cluster, machines.names, planning.model,
                      request.machines.stage_program, request.machines.have_answered);
}

}  // namespace motley
