// motley ckpt verify: verifies every byte of a checkpoint, here or on all machines of its run.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/log.h"
#include "base/process/progress_line.h"
#include "base/text/text_table.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/inspect.h"
#include "checkpoint/lock/run_lock.h"
#include "checkpoint/replication/checkpoint_metadata.h"
#include "checkpoint/replication/inventory.h"
#include "cli/ckpt/commands.h"
#include "cli/ckpt/run_parts.h"
#include "cli/ckpt/weights_inputs.h"
#include "cli/inputs.h"
#include "cli/work_progress.h"
#include "cluster/replication/machine_stores.h"
#include "cluster/replication/repair.h"
#include "run_config/config_io.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

Result<void> verify_here(const Arguments& arguments) {
  MOTLEY_ASSIGN(const fs::path folder, named_checkpoint(arguments.operand(0)));
  WorkProgress watch;
  if (arguments.has("json")) {
    const Result<Json> json = verification_to_json(folder, &watch);
    watch.clear();
    if (!json.ok()) return json.error();
    fmt::print("{}\n", json->dump(2));
    return {};
  }
  const Result<std::string> text = format_verification(folder, &watch);
  watch.clear();
  if (!text.ok()) return text.error();
  std::fputs(text->c_str(), stdout);
  return {};
}

// The named checkpoint, or the newest one in the folder.
Result<CheckpointMetadata> metadata_to_verify(const NamedRun& named) {
  const auto known = list_checkpoints(named.run);
  for (auto it = known.rbegin(); it != known.rend(); ++it) {
    if (!named.step || *named.step == it->step) return read_metadata(it->folder);
  }
  return Error{ErrorCode::kConfig,
               fmt::format("{} has no checkpoint{}", named.run.string(),
                           named.step ? fmt::format(" of step {}", *named.step) : ""),
               "its manifest is missing here",
               "check the path; `motley ckpt gather` restores missing files of this folder"};
}

// A checkpoint on all responding machines.
struct FoundFiles {
  fs::path run;
  std::int64_t step = 0;
  int copies = 0;  // additional copies that each file should have
  StoreInventory stores;
  std::vector<FileLocations> files;

  [[nodiscard]] std::string name_of(const StoreId& id) const {
    const MachineStore& store = stores.by_id.at(id);
    return store.machines.empty() ? "here" : store.machines.front();
  }

  [[nodiscard]] std::vector<std::string> names_of(const std::vector<StoreId>& ids) const {
    std::vector<std::string> names;
    for (const StoreId& id : ids) names.push_back(name_of(id));
    return names;
  }
};

// Holds the folder's lock meanwhile, so that no training changes the files.
Result<FoundFiles> look_everywhere(const Arguments& arguments) {
  ProgressLine line("");
  const Log log("", arguments.has("json") ? LogLevel::kWarn : LogLevel::kInfo, line.log_output());
  MOTLEY_ASSIGN(const NamedRun named, named_run(arguments.operand(0)));
  MOTLEY_ASSIGN(const Cluster cluster, read_cluster(arguments, 1));
  MOTLEY_ASSIGN(const fs::path program, stage_program());
  MOTLEY_ASSIGN(const CheckpointMetadata texts, metadata_to_verify(named));
  MOTLEY_ASSIGN(const Config config,
                saved_config_from_json(texts.manifest.config, named.run.string()));
  MOTLEY_ASSIGN(const RunLock lock, RunLock::acquire(named.run, log));
  MOTLEY_ASSIGN(const auto machines, answering_machines(cluster, program, log));
  FoundFiles found{.run = named.run, .step = texts.step(), .copies = config.checkpoint.copies};
  const WantedStep wanted = wanted_step(texts);
  const InventoryRequest request{.cluster = cluster,
                                 .machines = machines,
                                 .run_dir = named.run,
                                 .launch = lock.launch(),
                                 .program = program,
                                 .start_timeout_s = config.comm.start_timeout_s,
                                 .if_absent = IfAbsent::kLeave,
                                 .line = &line};
  MOTLEY_ASSIGN(found.stores, inventory_stores(request, {.wanted = wanted}, log));
  found.files = file_locations(wanted.files, found.stores);
  return found;
}

std::string files_table(const FoundFiles& found) {
  std::vector<TextRow> rows = {{"file", "intact on", "damaged on"}};
  for (const FileLocations& each : found.files) {
    rows.push_back({each.file, fmt::format("{}", fmt::join(found.names_of(each.intact), ", ")),
                    fmt::format("{}", fmt::join(found.names_of(each.damaged), ", "))});
  }
  return aligned_table(rows);
}

Json files_to_json(const FoundFiles& found) {
  Json files = Json::array();
  for (const FileLocations& each : found.files) {
    files.push_back({{"file", each.file},
                     {"whole", found.names_of(each.intact)},
                     {"damaged", found.names_of(each.damaged)}});
  }
  return {{"folder", checkpoint_folder(found.run, found.step).string()},
          {"step", found.step},
          {"copies", found.copies},
          {"files", files}};
}

// Limited by the number of usable folders.
std::size_t wanted_places(const FoundFiles& found) {
  const auto usable = std::ranges::count_if(
      found.stores.by_id, [](const auto& store) { return !store.second.machines.empty(); });
  return std::min(static_cast<std::size_t>(found.copies) + 1, static_cast<std::size_t>(usable));
}

Result<void> assess_files(const FoundFiles& found) {
  std::vector<std::string> lost;
  std::vector<std::string> damaged;
  for (const FileLocations& each : found.files) {
    if (each.intact.empty()) lost.push_back(each.file);
    if (!each.damaged.empty()) damaged.push_back(each.file);
  }
  const std::string which = fmt::format("the checkpoint of step {}", found.step);
  if (!lost.empty()) {
    return Error{
        ErrorCode::kCorrupt, which + " is incomplete on the machines that answer",
        fmt::format("intact on no machine: {}", fmt::join(lost, ", ")),
        "switch on or reconnect the machines that have these files, or give an earlier checkpoint"};
  }
  if (damaged.empty()) return {};
  return Error{ErrorCode::kCorrupt, which + " has damaged files with intact copies",
               fmt::format("{}", fmt::join(damaged, ", ")),
               fmt::format("replace them: motley ckpt repair {} --cluster FILE",
                           checkpoint_folder(found.run, found.step).string())};
}

Result<void> verify_everywhere(const Arguments& arguments) {
  MOTLEY_ASSIGN(const FoundFiles found, look_everywhere(arguments));
  const Result<void> assessed = assess_files(found);
  if (arguments.has("json")) {
    fmt::print("{}\n", files_to_json(found).dump(2));
    return assessed;
  }
  std::fputs(files_table(found).c_str(), stdout);
  if (!assessed.ok()) return assessed;
  const auto few = std::ranges::count_if(found.files, [&](const FileLocations& each) {
    return each.intact.size() < wanted_places(found);
  });
  fmt::print("step {}: all {} files are intact", found.step, found.files.size());
  if (few > 0) {
    fmt::print(
        "; {} with fewer copies than checkpoint.copies = {}; `motley ckpt repair` makes them", few,
        found.copies);
  }
  fmt::print("\n");
  return {};
}

}  // namespace

Command ckpt_verify_command() {
  return {{"ckpt verify",
           "verify every byte of a checkpoint by its hashes",
           {"RUN"},
           {cluster_option(), json_option()},
           "RUN is a run's folder (its newest checkpoint is read), or a checkpoint.\n"
           "Exit status 7 if a file is missing, truncated or changed.\n\n"
           "With --cluster, for a run whose machines have their own folders: each machine reads\n"
           "its files, and a line for each file shows where it is intact and where it is damaged.\n"
           "Nothing is changed; `ckpt repair` restores damaged files.\n\n"
           "Example\n"
           "  motley ckpt verify runs/gpt --cluster home.toml\n"},
          [](const Arguments& arguments) {
            return arguments.has("cluster") ? verify_everywhere(arguments) : verify_here(arguments);
          }};
}

}  // namespace motley
