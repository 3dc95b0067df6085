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
#include "checkpoint/checkpoint.h"
#include "checkpoint/lock/run_lock.h"
#include "cluster/process/work_line.h"
#include "cluster/stores/move.h"
#include "cluster/stores/plan_moves.h"
#include "cluster/stores/repair.h"
#include "job/config_io.h"
#include "plan/quantity_text.h"
#include "tools/ckpt/commands.h"
#include "tools/ckpt/run_parts.h"
#include "tools/inputs.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

// A run, its responding machines, and their files of the named checkpoint, or of the newest usable
// one.
struct FoundParts {
  Cluster cluster;
  std::set<std::string> machines;
  fs::path program;
  Config config;
  Stores stores;
  RestorePoint point;
};

StoresRequest request_of(const FoundParts& found,
                         const fs::path& run,
                         const RunLock& lock,
                         WorkLine& line) {
  return {.cluster = found.cluster,
          .machines = found.machines,
          .run_dir = run,
          .launch = lock.launch(),
          .program = found.program,
          .start_timeout_s = found.config.comm.start_timeout_s,
          .line = &line};
}

Result<void> find_parts(
    FoundParts& found, const NamedRun& named, RunLock& lock, WorkLine& line, const Log& log) {
  const fs::path& run = named.run;
  const AskStores ask = [&](const StoreQuestion& question) -> Result<Stores> {
    MOTLEY_ASSIGN(found.stores,
                  inventory_stores(request_of(found, run, lock, line), question, log));
    return found.stores;
  };
  MOTLEY_ASSIGN(auto point, find_restore_point(run, lock.launch(), ask, log, named.step));
  if (!point) {
    const std::string which = named.step ? fmt::format(" of step {}", *named.step) : "";
    return Error{ErrorCode::kConfig, fmt::format("{} holds no checkpoint{}", run.string(), which),
                 "nor does a machine of the cluster file", "check the path and the cluster file"};
  }
  found.point = *std::move(point);
  MOTLEY_ASSIGN(found.config,
                saved_config_from_json(found.point.texts.manifest.config, run.string()));
  return lock.rise_above(found.stores.last_launch(), log);
}

// The files to deliver to each folder; the checkpoint's metadata is always delivered.
using Deliveries = std::map<StoreId, std::set<std::string>>;
using Choose = Result<Deliveries> (*)(const FoundParts& found,
                                      const StoresRequest& request,
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
void tell(const Deliveries& deliveries, const FoundParts& found, const Log& log) {
  for (const auto& [id, files] : deliveries) {
    const Store& store = found.stores.by_id.at(id);
    const std::uint64_t bytes = bytes_of({{id, files}}, found.point.texts.manifest);
    const std::string what = files.empty() ? "its manifest"
                                           : fmt::format("{} ({})", fmt::join(files, ", "),
                                                         bytes_text(static_cast<double>(bytes)));
    log.info(fmt::format("{}, {}, gets {}", store.machines.front(), store.answer.place.dir.string(),
                         what));
  }
}

Result<void> mend(const Arguments& arguments, Choose choose) {
  WorkLine line("asking which machines answer");
  const Log log("", arguments.has("json") ? LogLevel::kWarn : LogLevel::kInfo, line.log_output());
  MOTLEY_ASSIGN(const NamedRun named, named_run(arguments.operand(0)));
  FoundParts found;
  MOTLEY_ASSIGN(found.cluster, read_cluster(arguments, 1));
  MOTLEY_ASSIGN(found.program, stage_program());
  MOTLEY_ASSIGN(RunLock lock, RunLock::take(named.run, log));
  MOTLEY_ASSIGN(found.machines, answering_machines(found.cluster, found.program, log));
  line.say("looking for the checkpoint's parts on all machines");
  MOTLEY_TRY(find_parts(found, named, lock, line, log));
  const std::int64_t step = found.point.texts.step();
  const StoresRequest request = request_of(found, named.run, lock, line);
  MOTLEY_ASSIGN(const Deliveries deliveries, choose(found, request, log));
  tell(deliveries, found, log);
  std::size_t count = 0;
  for (const auto& [store, names] : deliveries) count += names.size();
  const std::uint64_t bytes = bytes_of(deliveries, found.point.texts.manifest);
  MOTLEY_ASSIGN(const auto views,
                move_files(plan_deliveries(found.point, deliveries, found.stores, found.cluster),
                           request, found.stores, found.config, log));
  line.clear();
  const fs::path folder = checkpoint_folder(named.run, step);
  if (arguments.has("json")) {
    fmt::print(
        "{}\n",
        Json{{"folder", folder.string()}, {"step", step}, {"files", count}, {"bytes", bytes}}.dump(
            2));
  } else {
    fmt::print("{}: step {}, {} file{} brought, {}\n", folder.string(), step, count,
               count == 1 ? "" : "s", bytes_text(static_cast<double>(bytes)));
  }
  return {};
}

Result<Deliveries> choose_to_gather(const FoundParts& found,
                                    const StoresRequest& /*request*/,
                                    const Log& /*log*/) {
  auto files = missing_here(found.point);
  if (!files.empty() && found.stores.by_id.at(StoreId()).machines.empty()) {
    return Error{ErrorCode::kConfig, "this machine is not in the cluster file",
                 "the others cannot send it what it lacks",
                 "add an entry with this machine's address"};
  }
  return files;
}

Result<Deliveries> choose_to_repair(const FoundParts& found,
                                    const StoresRequest& request,
                                    const Log& log) {
  MOTLEY_ASSIGN(const Stores told, inventory_stores(request, {{}, found.point.texts.step()}, log));
  Deliveries deliveries =
      missing_copies(found.point, found.stores, found.cluster, found.config.checkpoint.copies);
  for (const StoreId& store : without_metadata(found.point, told)) deliveries.try_emplace(store);
  return deliveries;
}

std::vector<OptionSpec> mend_options() {
  return {cluster_option(), json_option()};
}

}  // namespace

Command ckpt_gather_command() {
  CommandSpec spec{
      "ckpt gather",
      "bring a checkpoint from its machines into one folder",
      {"RUN"},
      mend_options(),
      "RUN is a run's folder here, of a run whose machines have folders of their own. The\n"
      "files of its newest checkpoint that lie elsewhere are brought into RUN, every byte\n"
      "compared; then it is a whole checkpoint, which all other commands take and Hugging\n"
      "Face opens. RUN/checkpoints/step-N stands for an older one. Where the folder was\n"
      "lost, an empty one in its place is filled. The cluster file names this machine too,\n"
      "by its address.\n\n"
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
      "replace what is damaged or gone of a checkpoint by its copies",
      {"RUN"},
      mend_options(),
      "RUN is a run's folder here, of a run whose machines have folders of their own. Every\n"
      "byte of the newest checkpoint's files on all machines is compared; what is damaged\n"
      "or missing where it was written comes from its copy, the manifest and what else\n"
      "describes it from any machine, and what has fewer copies than checkpoint.copies\n"
      "gets them again. RUN/checkpoints/step-N stands for an older one. Where nothing whole is "
      "left of a file the next\n"
      "older checkpoint is taken, and said; exit status 7 where there is none.\n\n"
      "Example\n"
      "  motley ckpt repair runs/gpt --cluster home.toml\n"};
  spec.needs = "--cluster FILE";
  return {spec, [](const Arguments& arguments) -> Result<void> {
            MOTLEY_TRY(required_value(arguments, "cluster"));
            return mend(arguments, choose_to_repair);
          }};
}

}  // namespace motley
