#include "cli/inputs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstring>

#include "base/system/files.h"
#include "base/system/program_path.h"
#include "base/toml.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/folders.h"
#include "checkpoint/lock/launch_record.h"
#include "cli/active_training.h"
#include "cli/local_machine.h"
#include "cli/output_file.h"
#include "plan/links.h"
#include "record/run_folder.h"

namespace motley {
namespace {

constexpr std::size_t kLinksBytesMax = std::size_t{4} << 20;

std::map<std::string, std::string> motley_environment() {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const char* equals = std::strchr(*entry, '=');
    if (std::strncmp(*entry, "MOTLEY_", 7) != 0 || equals == nullptr) continue;
    variables.emplace(std::string(static_cast<const char*>(*entry), equals), equals + 1);
  }
  return variables;
}

// Reads a TOML file named on the command line; an unreadable one is a configuration error.
Result<std::string> read_toml_file(const std::filesystem::path& path) {
  auto text = read_input(path, kTomlBytesMax);
  if (!text.ok()) {
    Error error = std::move(text).error();
    error.code = ErrorCode::kConfig;
    return error;
  }
  return text;
}

}  // namespace

Result<void> check_exists(const std::filesystem::path& path) {
  MOTLEY_ASSIGN(const bool exists, path_exists(path));
  if (exists) return {};
  return Error{ErrorCode::kConfig, fmt::format("cannot read {}", path.string()),
               "no such file or folder", "check the path"};
}

Result<void> check_is_run(const std::filesystem::path& path) {
  MOTLEY_TRY(check_exists(path));
  MOTLEY_ASSIGN(const bool has_checkpoints, path_exists(checkpoints_root(path)));
  if (has_checkpoints || last_launch(path) > 0) return {};
  return Error{ErrorCode::kConfig, fmt::format("{} is not a run folder", path.string()),
               "it has no checkpoints, and no training has run in it",
               "give the folder of a run (run.dir)"};
}

OptionSpec set_option() {
  return {"set", "KEY=VALUE", "override a configuration key, e.g. --set train.lr=1e-3", true};
}

OptionSpec cluster_option() {
  return {"cluster", "FILE", "the machines and links (docs/formats/cluster.md)"};
}

OptionSpec links_option() {
  return {"links", "FILE", "speeds measured by `motley probe`, instead of the cluster file's"};
}

OptionSpec profile_option() {
  return {"profile", "FILE", "profile from `motley profile`; its devices are not measured", true};
}

OptionSpec measure_option() {
  return {"measure", "", "measure all devices again, including those with cached profiles"};
}

OptionSpec pin_option() {
  return {"pin", "TEXT", "constraint on the plan, e.g. --pin 'never laptop' (docs/formats/pins.md)",
          true};
}

OptionSpec transport_option() {
  return {"transport", "KIND", "auto, ucx, gloo or tcp (default auto, as comm.transport)"};
}

OptionSpec encrypt_option() {
  return {"encrypt", "WHEN", "auto, always or never (default auto, as comm.encrypt)"};
}

OptionSpec json_option() {
  return {"json", "", "print JSON for other programs"};
}

Result<ResolvedConfig> read_config(const std::filesystem::path& path, const Arguments& arguments) {
  MOTLEY_ASSIGN(const std::string text, read_toml_file(path));
  MOTLEY_ASSIGN(Overrides overrides, set_values(arguments));
  if (arguments.has("run")) {
    const std::string& run = arguments.value("run");
    if (!is_plain_text(run)) {
      return Error{ErrorCode::kUsage, "--run must be one line of UTF-8 text",
                   fmt::format("it is '{}'", excerpt(run)), "choose another name"};
    }
  }
  MOTLEY_ASSIGN(ResolvedConfig resolved,
                resolve_config(text, path.string(), motley_environment(), overrides));
  if (arguments.has("run")) {
    resolved.config.run.dir = arguments.value("run");
    resolved.origins["run.dir"] = "--run";
  }
  for (const std::string& pin : arguments.values("pin")) {
    resolved.config.parallel.pins.push_back(pin);
    resolved.origins["parallel.pins"] = "--pin";
  }
  return resolved;
}

Error with_key_position(Error error, const ResolvedConfig& resolved) {
  const auto origin = resolved.origins.find(error.key);
  if (origin == resolved.origins.end() || origin->second == "default") return error;
  error.what += ", " + key_origin_text(origin->second, error.key);
  return error;
}

Result<Cluster> read_cluster(const Arguments& arguments, int devices, Mixture mixture) {
  if (!arguments.has("cluster")) {
    if (!arguments.has("links")) return automatic_cluster(devices);
    return Error{ErrorCode::kUsage, "--links needs --cluster FILE", "a single machine has no links",
                 ""};
  }
  const std::string& path = arguments.value("cluster");
  MOTLEY_ASSIGN(const std::string text, read_toml_file(path));
  const LocalMachine here = local_machine();
  MOTLEY_ASSIGN(Cluster cluster, parse_cluster(text, path, here, mixture));
  MOTLEY_TRY(make_addresses_numeric(cluster, here));
  if (arguments.has("links")) {
    const std::string& links_path = arguments.value("links");
    MOTLEY_TRY(check_exists(links_path));
    MOTLEY_ASSIGN(const std::string links_text, read_input(links_path, kLinksBytesMax));
    MOTLEY_ASSIGN(const Links links, parse_links(links_text, links_path));
    if (const auto applied = apply_links(cluster, links); !applied.ok()) {
      Error error = applied.error();
      error.what += ", " + links_path;
      return error;
    }
  }
  return cluster;
}

Cluster loopback_pair() {
  Cluster cluster;
  cluster.machines.clear();
  for (const char* name : {"here", "again"}) {
    Machine& machine = cluster.machines.emplace_back();
    machine.name = name;
    machine.address = "127.0.0.1";
  }
  cluster.trusted = true;
  return cluster;
}

Result<Plan> read_named_plan(const std::filesystem::path& path) {
  MOTLEY_TRY(check_exists(path));
  return read_plan(path);
}

Result<std::filesystem::path> checkpoint_by_word(const std::filesystem::path& path) {
  const std::filesystem::path folder = path.parent_path();
  const bool is_best = path.filename() == "best";
  if ((!is_best && path.filename() != "latest") || folder.filename() != "checkpoints") return path;
  MOTLEY_ASSIGN(const bool is_folder, path_exists(path));
  if (is_folder) return path;
  const std::filesystem::path run = folder.has_parent_path() ? folder.parent_path() : ".";
  if (!is_best) return named_checkpoint(run);
  const auto best = best_checkpoint(list_checkpoints(run));
  if (best) return best->info.folder;
  return Error{ErrorCode::kConfig,
               fmt::format("{} has no checkpoint of a best evaluation", run.string()),
               "its run does not compare evaluations, or has not saved the best one yet",
               "set checkpoint.keep_best = true for the run, or name another checkpoint; 'motley "
               "ckpt list RUN' lists them"};
}

Result<std::filesystem::path> named_checkpoint(const std::filesystem::path& named) {
  MOTLEY_ASSIGN(const std::filesystem::path path, checkpoint_by_word(named));
  MOTLEY_TRY(check_exists(path));
  MOTLEY_ASSIGN(const bool is_checkpoint, path_exists(path / "manifest.json"));
  if (is_checkpoint) return path;
  const auto plan = read_named_plan(RunFolder(path).plan_path());
  if (plan.ok() && !capabilities_of(*plan).keeps_state) {
    return Error{ErrorCode::kConfig,
                 fmt::format("the run in {} was on virtual devices", path.string()),
                 "it trained nothing and saved no checkpoint", "give a run on real devices"};
  }
  MOTLEY_TRY(path_exists(checkpoint_folder(path, 0)));  // fails if the folder is not readable
  const std::vector<CheckpointInfo> checkpoints = list_checkpoints(path);
  if (checkpoints.empty()) {
    return Error{ErrorCode::kConfig, fmt::format("{} has no checkpoint", path.string()),
                 "it is neither a checkpoint nor the folder of a run with one",
                 "give one of the two; 'motley ckpt list RUN' lists the checkpoints of a run"};
  }
  return checkpoints.back().folder;
}

Result<Profile> read_profiles(const Arguments& arguments) {
  Profile all;
  for (const std::string& path : arguments.values("profile")) {
    MOTLEY_TRY(check_exists(path));
    MOTLEY_ASSIGN(Profile one, read_profile(path));
    for (DeviceProfile& device : one.devices) {
      std::erase_if(all.devices, [&](const DeviceProfile& known) {
        return known.machine == device.machine && known.device == device.device;
      });
      all.devices.push_back(std::move(device));
    }
  }
  return all;
}

Result<Profile> read_profiles(const Arguments& arguments, const TrainConfig& train) {
  MOTLEY_ASSIGN(Profile profile, read_profiles(arguments));
  for (const DeviceProfile& device : profile.devices) {
    if (device.precision == train.precision) continue;
    return Error{
        ErrorCode::kConfig,
        fmt::format("the profile of {} ({}) is not for train.precision = \"{}\"", device.machine,
                    device.device, train.precision),
        fmt::format("it was measured in {}", device.precision),
        fmt::format(
            "leave --profile out, or create one with motley profile --set train.precision={}",
            train.precision)};
  }
  return profile;
}

Result<RunReport> read_named_report(const std::filesystem::path& run) {
  const std::filesystem::path path = RunFolder(run).report_path();
  MOTLEY_ASSIGN(const bool exists, path_exists(path));
  if (exists) return read_report(path);
  if (const auto under_way = active_training(run)) {
    return Error{ErrorCode::kConfig, fmt::format("no report in {} yet", run.string()),
                 under_way->text(),
                 fmt::format("{} is written at its end; until then {} has a line for each step",
                             path.filename().string(), RunFolder(run).metrics_path().string())};
  }
  MOTLEY_ASSIGN(const bool is_there, path_exists(run));
  return Error{ErrorCode::kConfig, fmt::format("no report of a run in {}", run.string()),
               is_there ? fmt::format("{} is written at the end of a training: its launcher was "
                                      "killed, or its disk was full",
                                      path.filename().string())
                        : "no such folder",
               is_there ? "resume the run (--resume), or give the folder of one that has ended"
                        : "give the folder of a run (run.dir) that has ended"};
}

Result<RunMeasurement> read_measurement(const std::filesystem::path& folder) {
  MOTLEY_ASSIGN(const RunReport report, read_named_report(folder));
  RunMeasurement run;
  MOTLEY_ASSIGN(run.plan, read_named_plan(RunFolder(folder).plan_path()));
  if (report.ranks.size() != run.plan.ranks.size()) {
    return Error{ErrorCode::kConfig,
                 fmt::format("the report in {} is of another plan", folder.string()),
                 fmt::format("it has {} ranks, plan.json has {}", report.ranks.size(),
                             run.plan.ranks.size()),
                 "give a run whose files were not changed"};
  }
  if (!report.plan_hash.empty() && report.plan_hash != plan_hash_text(run.plan)) {
    return Error{
        ErrorCode::kConfig,
        fmt::format("the report in {} is of an earlier session with another plan", folder.string()),
        "plan.json is of the session that was resumed, which has not ended",
        "wait for its end, or give another run"};
  }
  run.step_s = report.step_s.measured;
  for (const RankReport& rank : report.ranks) {
    run.busy_s.push_back(rank.compute_s.measured);
    run.peak_bytes.push_back(static_cast<std::int64_t>(rank.memory_bytes.measured));
  }
  return run;
}

Result<std::vector<RunMeasurement>> read_measurements(const Arguments& arguments) {
  std::vector<RunMeasurement> runs;
  for (const std::string& folder : arguments.values("learn")) {
    MOTLEY_ASSIGN(RunMeasurement run, read_measurement(folder));
    runs.push_back(std::move(run));
  }
  return runs;
}

Result<void> check_outputs(const Arguments& arguments, std::initializer_list<const char*> options) {
  for (const char* option : options) {
    if (arguments.has(option)) MOTLEY_TRY(check_output(arguments.value(option)));
  }
  return {};
}

Result<std::filesystem::path> stage_program() {
  const std::filesystem::path program = program_path().parent_path() / "motley-stage";
  MOTLEY_ASSIGN(const bool exists, path_exists(program));
  if (exists) return program;
  return Error{ErrorCode::kConfig, fmt::format("the worker {} is missing", program.string()),
               "this build of Motley has no LibTorch, or was only partly copied",
               "build with -DMOTLEY_WITH_TORCH=ON (scripts/build)"};
}

}  // namespace motley
