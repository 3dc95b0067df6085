// motley ckpt prune.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string_view>

#include "base/json.h"
#include "base/log.h"
#include "base/system/files.h"
#include "base/toml.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/lock/run_lock.h"
#include "cli/ckpt/commands.h"
#include "cli/inputs.h"
#include "cli/work_progress.h"
#include "cluster/run/checkpoint_committer.h"
#include "plan/quantity_text.h"
#include "record/run_folder.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kNewestMax = 1'000'000;
constexpr std::int64_t kKeepEveryMax = 1'000'000'000'000;

Result<Config> config_of(const fs::path& run) {
  const fs::path config_path = RunFolder(run).config_path();
  MOTLEY_ASSIGN(const bool has_config, path_exists(config_path));
  if (!has_config) return Config{};
  MOTLEY_ASSIGN(const std::string text, read_file(config_path, kTomlBytesMax));
  MOTLEY_ASSIGN(const ResolvedConfig resolved, resolve_config(text, config_path.string(), {}, {}));
  return resolved.config;
}

// The run's own retention rule, overridden by the command's options.
Result<RetentionPolicy> rule_of(const Arguments& arguments,
                                const fs::path& run,
                                const std::vector<CheckpointInfo>& checkpoints) {
  Result<Config> config = config_of(run);
  if (!config.ok()) {
    if (!arguments.has("keep") || !arguments.has("keep-every")) return config.error();
    config = Config{.checkpoint = {.keep_best = true}};  // the run may keep one
  }
  RetentionPolicy rule = retention_policy(*config, checkpoints);
  if (arguments.has("keep")) {
    MOTLEY_ASSIGN(const std::int64_t newest, integer_value(arguments, "keep", 1, kNewestMax));
    rule.newest = static_cast<int>(newest);
  }
  if (arguments.has("keep-every")) {
    MOTLEY_ASSIGN(rule.every, integer_value(arguments, "keep-every", 0, kKeepEveryMax));
  }
  return rule;
}

struct Soundness {
  std::int64_t last_good = 0;         // the newest intact step
  std::vector<std::int64_t> damaged;  // later steps, the newest first
};

// kCorrupt if no checkpoint is intact. REQUIRES: there is at least one.
Result<Soundness> soundness_of(const std::vector<CheckpointInfo>& checkpoints,
                               WorkObserver& watch) {
  Soundness found;
  std::optional<Error> first_fault;
  for (auto info = checkpoints.rbegin(); info != checkpoints.rend(); ++info) {
    const auto verified = verify_checkpoint(info->folder, &watch);
    if (verified.ok()) {
      found.last_good = info->step;
      return found;
    }
    if (is_stop(verified.error())) return verified.error();
    if (!first_fault) first_fault = verified.error();
    found.damaged.push_back(info->step);
  }
  first_fault->remedy = "no checkpoint of this run is intact, so none was removed";
  return *first_fault;
}

// "step 40 is damaged, so step 30 stays".
std::string damage_text(const Soundness& found) {
  return fmt::format("{} {} {} damaged, so step {} is retained\n",
                     found.damaged.size() == 1 ? "step" : "steps", fmt::join(found.damaged, ", "),
                     found.damaged.size() == 1 ? "is" : "are", found.last_good);
}

std::uint64_t bytes_in(const fs::path& folder) {
  std::uint64_t bytes = 0;
  std::error_code code;
  for (fs::directory_iterator it(folder, code); !code && it != fs::directory_iterator();
       it.increment(code)) {
    std::error_code ignored;
    const std::uint64_t size = it->file_size(ignored);
    if (!ignored) bytes += size;
  }
  return bytes;
}

void report_pruning(const Arguments& arguments,
                    const std::vector<CheckpointInfo>& all,
                    const std::vector<CheckpointInfo>& dropped,
                    const Soundness& found,
                    std::uint64_t bytes) {
  const bool is_dry = arguments.has("dry-run");
  const auto steps_of = [](const std::vector<CheckpointInfo>& list) {
    Json steps = Json::array();
    for (const CheckpointInfo& info : list) steps.push_back(info.step);
    return steps;
  };
  std::vector<CheckpointInfo> kept;
  for (const CheckpointInfo& info : all) {
    const bool is_dropped =
        std::ranges::find(dropped, info.step, &CheckpointInfo::step) != dropped.end();
    if (!is_dropped) kept.push_back(info);
  }
  if (arguments.has("json")) {
    fmt::print("{}\n", Json{{"dry_run", is_dry},
                            {"removed", steps_of(dropped)},
                            {"kept", steps_of(kept)},
                            {"damaged", found.damaged},
                            {"bytes", bytes}}
                           .dump(2));
    return;
  }
  if (!found.damaged.empty()) fmt::print("{}", damage_text(found));
  for (const CheckpointInfo& info : dropped) {
    fmt::print("{} {}\n", is_dry ? "would remove" : "removed", info.folder.string());
  }
  fmt::print("{} {} of {} checkpoints, {}\n", is_dry ? "would remove" : "removed", dropped.size(),
             all.size(), bytes_text(static_cast<double>(bytes)));
}

Result<void> run_prune(const Arguments& arguments) {
  const fs::path run = arguments.operand(0);
  MOTLEY_TRY(check_is_run(run));
  // Before the lock: wrong options leave no trace.
  MOTLEY_TRY(rule_of(arguments, run, {}));
  const Log log("");
  std::optional<RunLock> lock;
  if (!arguments.has("dry-run")) {
    MOTLEY_ASSIGN(lock, RunLock::acquire(run, log));
  }
  const std::vector<CheckpointInfo> checkpoints = list_checkpoints(run);
  MOTLEY_ASSIGN(RetentionPolicy rule, rule_of(arguments, run, checkpoints));
  std::vector<CheckpointInfo> dropped = dropped_checkpoints(checkpoints, rule);
  Soundness found;
  std::uint64_t bytes = 0;
  if (!dropped.empty()) {
    WorkProgress watch;
    MOTLEY_ASSIGN(found, soundness_of(checkpoints, watch));
    rule.always.insert(found.last_good);
    dropped = dropped_checkpoints(checkpoints, rule);
    for (const CheckpointInfo& info : dropped) bytes += bytes_in(info.folder);
  }
  if (lock) {
    MOTLEY_TRY(lock->confirm());
    MOTLEY_TRY(prune_checkpoints(run, rule, lock->launch()));
  }
  report_pruning(arguments, checkpoints, dropped, found, bytes);
  return {};
}

}  // namespace

Command ckpt_prune_command() {
  return {
      {"ckpt prune",
       "remove older checkpoints of a run",
       {"RUN"},
       {{"keep", "N", "number of newest ones to retain (default: the run's checkpoint.keep)"},
        {"keep-every", "K",
         "also retain checkpoints of steps that are multiples of K (default: the run's "
         "checkpoint.keep_every)"},
        {"dry-run", "", "list what would be removed, and remove nothing"},
        json_option()},
       "RUN is a run's folder. The newest checkpoint that `ckpt verify` finds intact is always\n"
       "retained, and later damaged ones are listed; if none is intact, none is removed, and the\n"
       "exit status is 7. Remains of interrupted saves are removed too. A folder in which a\n"
       "training runs is refused, exit status 4. Machines with their own folders prune them\n"
       "during training.\n\n"
       "Examples\n"
       "  motley ckpt prune runs/gpt --keep 1 --dry-run\n"
       "  motley ckpt prune runs/gpt --keep 3 --keep-every 1000\n"},
      run_prune};
}

}  // namespace motley
