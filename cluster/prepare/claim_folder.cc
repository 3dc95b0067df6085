#include "cluster/prepare/claim_folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/system/files.h"
#include "checkpoint/checkpoint.h"
#include "cluster/join/head/needed_files.h"
#include "cluster/replication/machine_stores.h"
#include "cluster/run/inventory_request.h"
#include "cluster/run/left_save.h"

namespace motley {
namespace {

// An existing run is not overwritten. If it has steps left, the error suggests resuming it.
Error with_resume(Error error, const RunFolder& folder, const TrainingRequest& request) {
  if (error.code != ErrorCode::kConfig) return error;
  const auto checkpoints = list_checkpoints(folder.dir());
  const auto report = read_report(folder.report_path());
  const bool has_stopped = report.ok() && !report->end.stopped_early.empty();
  // Of a run whose steps are not known here the resume itself reports that it is done.
  const std::int64_t steps = request.planning.config.train.steps;
  const bool is_done =
      has_stopped || (!checkpoints.empty() && steps > 0 && checkpoints.back().step >= steps);
  if (!capabilities_of(request.planning.cluster).keeps_state) {
    error.remedy = "choose another folder with --run: a run on virtual devices cannot be resumed";
  } else if (!is_done && !request.commands.resume.empty()) {
    error.remedy += "\n" + request.commands.resume;
  }
  return error;
}

// Checks that some machine has a part of a checkpoint; creates nothing. Before the launcher's
// folder is locked there is no launch number to send to the machines.
Result<void> require_run_somewhere(const RunFolder& folder,
                                   const TrainingRequest& request,
                                   const CheckedRequest& checked,
                                   const Log& log) {
  const std::set<std::string>& machines = checked.machines.names;
  InventoryRequest query = inventory_request(request, checked.planning.cluster, machines, "");
  query.if_absent = IfAbsent::kLeave;
  MOTLEY_ASSIGN(const StoreInventory stores, inventory_stores(query, {}, log));
  const auto has_part = [](const auto& store) { return !store.second.contents.steps.empty(); };
  if (std::ranges::any_of(stores.by_id, has_part)) return {};
  return Error{
      ErrorCode::kConfig, fmt::format("there is no run {} on any machine", folder.dir().string()),
      fmt::format(
          "that folder does not exist here, and the folders of {} have no part of a checkpoint",
          fmt::join(machines, ", ")),
      "check --run; a new run starts without --resume"};
}

// Fails if the folder to resume does not exist: none is created for a mistyped name.
Result<void> require_run(const RunFolder& folder,
                         const TrainingRequest& request,
                         const CheckedRequest& checked,
                         const Log& log) {
  if (!checked.machines.may_be_distributed) return folder.newest_checkpoint().error();
  MOTLEY_TRY(check_machines(request, checked.planning, checked.machines));
  return require_run_somewhere(folder, request, checked, log);
}

// Commits what an earlier launch left to commit; then, whether the run resumes.
Result<bool> resumes_here(const RunFolder& folder,
                          const TrainingRequest& request,
                          const CheckedRequest& checked,
                          const Log& log) {
  if (commit_left_save(folder.dir(), log) && request.resume) return true;
  if (!checked.resumes) return false;
  // If the only checkpoint would have been one that cannot be committed, the run starts again.
  MOTLEY_ASSIGN(const bool is_run, path_exists(folder.config_path()));
  return !is_run || !list_checkpoints(folder.dir()).empty() || !require_all_count(folder.dir());
}

Result<ClaimedFolder> lock_folder(const RunFolder& folder,
                                  const TrainingRequest& request,
                                  const CheckedRequest& checked,
                                  const Log& log) {
  MOTLEY_ASSIGN(const bool exists, path_exists(folder.dir()));
  if (checked.resumes && !exists) MOTLEY_TRY(require_run(folder, request, checked, log));
  MOTLEY_TRY(folder.make());
  MOTLEY_ASSIGN(RunLock acquired, RunLock::acquire(folder.dir(), log));
  ClaimedFolder claimed{folder, std::make_unique<RunLock>(std::move(acquired)), checked.resumes};
  const std::string& launch = claimed.lock->launch();
  if (!checked.machines.may_be_distributed) {
    MOTLEY_ASSIGN(claimed.resumes, resumes_here(folder, request, checked, log));
  }
  if (!claimed.resumes) {
    Result<void> created = folder.create(claimed.lock->number());
    if (!created.ok()) return with_resume(std::move(created).error(), folder, request);
  }
  // The folder is locked, so partial files are of an earlier launch. With distributed checkpoints
  // they are retained: they may be the only copy of files committed on another machine.
  if (!checked.machines.may_be_distributed) {
    MOTLEY_TRY(prune_checkpoints(folder.dir(), /*rule=*/{}, launch));
  }
  return claimed;
}

}  // namespace

Result<ClaimedFolder> claim_folder(const TrainingRequest& request,
                                   const CheckedRequest& checked,
                                   Log& log) {
  const RunFolder folder(request.planning.config.run.dir);
  if (request.dry_run) {
    if (!checked.resumes) MOTLEY_TRY(folder.check_new());
    return ClaimedFolder{folder, nullptr, checked.resumes};
  }
  MOTLEY_ASSIGN(ClaimedFolder claimed, lock_folder(folder, request, checked, log));
  MOTLEY_TRY(make_folders(folder.log_dir()));
  MOTLEY_TRY(log.write_to(folder.log_dir() / "motley.log"));
  return claimed;
}

Result<void> check_before_machines_join(const TrainingRequest& request) {
  const Config& config = request.planning.config;
  const RunFolder folder(config.run.dir);
  if (!request.resume) {
    Result<void> is_new = folder.check_new();
    if (!is_new.ok()) return with_resume(std::move(is_new).error(), folder, request);
  }
  return check_files(with_absolute_paths(config));
}

}  // namespace motley
