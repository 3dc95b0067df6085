// motley ckpt gather | repair: for a checkpoint distributed over several machines' folders.
#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "base/json.h"
#include "base/log.h"
#include "base/process/progress_line.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/lock/run_lock.h"
#include "cli/ckpt/commands.h"
#include "cli/ckpt/run_parts.h"
#include "cli/inputs.h"
#include "cluster/replication/gather.h"
#include "cluster/replication/repair.h"
#include "plan/quantity_text.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

using Choose = Result<Deliveries> (*)(const DistributedCheckpoint& found, const Log& log);

Result<void> mend(const Arguments& arguments, Choose choose) {
  ProgressLine line("querying the machines");
  const Log log("", arguments.has("json") ? LogLevel::kWarn : LogLevel::kInfo, line.log_output());
  MOTLEY_ASSIGN(const NamedRun named, named_run(arguments.operand(0)));
  MOTLEY_ASSIGN(const Cluster cluster, read_cluster(arguments, 1));
  MOTLEY_ASSIGN(const fs::path program, stage_program());
  MOTLEY_ASSIGN(RunLock lock, RunLock::acquire(named.run, log));
  MOTLEY_ASSIGN(const auto machines, answering_machines(cluster, program, log));
  line.say("searching all machines for parts of the checkpoint");
  MOTLEY_ASSIGN(
      const DistributedCheckpoint found,
      find_checkpoint(cluster, machines, program, named.run, named.step, lock, line, log));
  const std::int64_t step = found.point.step_metadata.step();
  MOTLEY_ASSIGN(const Deliveries deliveries, choose(found, log));
  MOTLEY_ASSIGN(const DeliveredFiles delivered, deliver(found, deliveries, log));
  line.clear();
  const fs::path folder = checkpoint_folder(named.run, step);
  if (arguments.has("json")) {
    fmt::print("{}\n", Json{{"folder", folder.string()},
                            {"step", step},
                            {"files", delivered.count},
                            {"bytes", delivered.bytes}}
                           .dump(2));
  } else {
    fmt::print("{}: step {}, {} file{} copied, {}\n", folder.string(), step, delivered.count,
               delivered.count == 1 ? "" : "s", bytes_text(static_cast<double>(delivered.bytes)));
  }
  return {};
}

Result<Deliveries> choose_to_gather(const DistributedCheckpoint& found, const Log& /*log*/) {
  return missing_in_launcher_folder(found);
}

Result<Deliveries> choose_to_repair(const DistributedCheckpoint& found, const Log& log) {
  MOTLEY_ASSIGN(const StoreInventory inventory,
                inventory_stores(request_of(found), {{}, found.point.step_metadata.step()}, log));
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
