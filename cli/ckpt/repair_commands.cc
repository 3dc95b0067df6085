// motley ckpt gather | repair: for a checkpoint distributed over several machines' folders.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/json.h"
#include "base/log.h"
#include "base/process/progress_line.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/lock/run_lock.h"
#include "cli/ckpt/commands.h"
#include "cli/ckpt/run_parts.h"
#include "cli/inputs.h"
#include "cluster/replication/plan_transfers.h"
#include "cluster/replication/repair.h"
#include "cluster/replication/transfers.h"
#include "plan/quantity_text.h"
#include "run_config/config_io.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

// A run, its responding machines, and their files of the named checkpoint, or of the newest usable
// one.
struct FoundShards {
  Cluster cluster;
  std::set<std::string> machines;
  fs::path program;
  Config config;
  StoreInventory stores;
  RestorePoint point;
};

InventoryRequest request_of(const FoundShards& found,
                            const fs::path& run,
                            const RunLock& lock,
                            ProgressLine& line) {
  return {.cluster = found.cluster,
          .machines = found.machines,
          .run_dir = run,
          .launch = lock.launch(),
          .program = found.program,
          .start_timeout_s = found.config.comm.start_timeout_s,
          .line = &line};
}

Result<void> find_shards(
    FoundShards& found, const NamedRun& named, RunLock& lock, ProgressLine& line, const Log& log) {
  const fs::path& run = named.run;
  const QueryStores ask = [&](const StoreQuery& store_query) -> Result<StoreInventory> {
    MOTLEY_ASSIGN(found.stores,
                  inventory_stores(request_of(found, run, lock, line), store_query, log));
    return found.stores;
  };
  MOTLEY_ASSIGN(auto point, find_restore_point(run, lock.launch(), ask, log, named.step));
  if (!point) {
    const std::string which = named.step ? fmt::format(" of step {}", *named.step) : "";
    return Error{ErrorCode::kConfig, fmt::format("{} has no checkpoint{}", run.string(), which),
                 "and neither has a machine of the cluster file",
                 "check the path and the cluster file"};
  }
  found.point = *std::move(point);
  MOTLEY_ASSIGN(found.config,
                saved_config_from_json(found.point.step_metadata.manifest.config, run.string()));
  return lock.advance_past(found.stores.last_launch(), log);
}

// The files to deliver to each folder; the checkpoint's metadata is always delivered.
using Deliveries = std::map<StoreId, std::set<std::string>>;
using Choose = Result<Deliveries> (*)(const FoundShards& found,
                                      const InventoryRequest& request,
                                      const Log& log);

// The total size of the delivered tensor files.
std::uint64_t bytes_of(const Deliveries& deliveries, const Manifest& manifest) {
  std::uint64_t bytes = 0;
  for (const auto& [store, names] : deliveries) {
    for (const WrittenFile& file : manifest.files)
      bytes += names.contains(file.name) ? file.bytes : 0;
  }
  return bytes;
}

// One line per folder.
void log_deliveries(const Deliveries& deliveries, const FoundShards& found, const Log& log) {
  for (const auto& [id, files] : deliveries) {
    const MachineStore& store = found.stores.by_id.at(id);
    const std::uint64_t bytes = bytes_of({{id, files}}, found.point.step_metadata.manifest);
    const std::string what = files.empty() ? "its manifest"
                                           : fmt::format("{} ({})", fmt::join(files, ", "),
                                                         bytes_text(static_cast<double>(bytes)));
    log.info(fmt::format("{}, {}, gets {}", store.machines.front(),
                         store.contents.location.dir.string(), what));
  }
}

Result<void> mend(const Arguments& arguments, Choose choose) {
  ProgressLine line("querying the machines");
  const Log log("", arguments.has("json") ? LogLevel::kWarn : LogLevel::kInfo, line.log_output());
  MOTLEY_ASSIGN(const NamedRun named, named_run(arguments.operand(0)));
  FoundShards found;
  MOTLEY_ASSIGN(found.cluster, read_cluster(arguments, 1));
  MOTLEY_ASSIGN(found.program, stage_program());
  MOTLEY_ASSIGN(RunLock lock, RunLock::acquire(named.run, log));
  MOTLEY_ASSIGN(found.machines, answering_machines(found.cluster, found.program, log));
  line.say("searching all machines for parts of the checkpoint");
  MOTLEY_TRY(find_shards(found, named, lock, line, log));
  const std::int64_t step = found.point.step_metadata.step();
  const InventoryRequest request = request_of(found, named.run, lock, line);
  MOTLEY_ASSIGN(const Deliveries deliveries, choose(found, request, log));
  log_deliveries(deliveries, found, log);
  std::size_t count = 0;
  for (const auto& [store, names] : deliveries) count += names.size();
  const std::uint64_t bytes = bytes_of(deliveries, found.point.step_metadata.manifest);
  MOTLEY_ASSIGN(const auto views, transfer_files(plan_deliveries(found.point, deliveries,
                                                                 found.stores, found.cluster),
                                                 request, found.stores, found.config, log));
  line.clear();
  const fs::path folder = checkpoint_folder(named.run, step);
  if (arguments.has("json")) {
    fmt::print(
        "{}\n",
        Json{{"folder", folder.string()}, {"step", step}, {"files", count}, {"bytes", bytes}}.dump(
            2));
  } else {
    fmt::print("{}: step {}, {} file{} copied, {}\n", folder.string(), step, count,
               count == 1 ? "" : "s", bytes_text(static_cast<double>(bytes)));
  }
  return {};
}

Result<Deliveries> choose_to_gather(const FoundShards& found,
                                    const InventoryRequest& /*request*/,
                                    const Log& /*log*/) {
  auto files = missing_here(found.point);
  if (!files.empty() && found.stores.by_id.at(StoreId()).machines.empty()) {
    return Error{ErrorCode::kConfig, "this machine is not in the cluster file",
                 "the others cannot send it the missing files",
                 "add an entry with this machine's address"};
  }
  return files;
}

Result<Deliveries> choose_to_repair(const FoundShards& found,
                                    const InventoryRequest& request,
                                    const Log& log) {
  MOTLEY_ASSIGN(const StoreInventory inventory,
                inventory_stores(request, {{}, found.point.step_metadata.step()}, log));
  Deliveries deliveries =
      missing_copies(found.point, found.stores, found.cluster, found.config.checkpoint.copies);
  for (const StoreId& store : without_metadata(found.point, inventory))
    deliveries.try_emplace(store);
  return deliveries;
}

std::vector<OptionSpec> mend_options() {
  return {cluster_option(), json_option()};
}

}  // namespace

Command ckpt_gather_command() {
  CommandSpec spec{
      "ckpt gather",
      "collect a checkpoint from its machines in one folder",
      {"RUN"},
      mend_options(),
      "RUN is a run's folder here, of a run whose machines have their own folders. The\n"
      "files of its newest checkpoint that are on other machines are copied to RUN and every\n"
      "byte is verified; the result is a complete checkpoint, which all other commands accept\n"
      "and Hugging Face opens. RUN/checkpoints/step-N selects an older one. If the folder was\n"
      "lost, an empty one in its place is filled. The cluster file must contain this machine,\n"
      "with its address.\n\n"
      "Example\n"
      "  motley ckpt gather runs/gpt --cluster home.toml\n"};
  spec.needs = "--cluster FILE";
  return {spec, [](const Arguments& arguments) -> Result<void> {
            MOTLEY_TRY(required_value(arguments, "cluster"));
            return mend(arguments, choose_to_gather);
          }};
}

Command ckpt_repair_command() {
  CommandSpec spec{
      "ckpt repair",
      "replace damaged or missing files of a checkpoint by their copies",
      {"RUN"},
      mend_options(),
      "RUN is a run's folder here, of a run whose machines have their own folders. Every\n"
      "byte of the newest checkpoint's files on all machines is verified. Files that are\n"
      "damaged or missing where they were written are restored from their copies, the manifest\n"
      "and other metadata from any machine, and missing copies are made up to\n"
      "checkpoint.copies. RUN/checkpoints/step-N selects an older one. If a file has no intact\n"
      "copy, the next older checkpoint is used, and this is reported; exit status 7 if there is\n"
      "none.\n\n"
      "Example\n"
      "  motley ckpt repair runs/gpt --cluster home.toml\n"};
  spec.needs = "--cluster FILE";
  return {spec, [](const Arguments& arguments) -> Result<void> {
            MOTLEY_TRY(required_value(arguments, "cluster"));
            return mend(arguments, choose_to_repair);
          }};
}

}  // namespace motley
