// motley launch: a training on several machines, started from here, joining by ticket, or started
// by a launcher of processes.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/secret.h"
#include "base/system/files.h"
#include "cli/command.h"
#include "cli/inputs.h"
#include "cli/launch/group_member.h"
#include "cli/launch/invitation.h"
#include "cli/launch/local_group.h"
#include "cli/launch/started_process.h"
#include "cli/local_machine.h"
#include "cli/train_options.h"
#include "cli/training.h"
#include "cluster/join/head/admission.h"
#include "cluster/replication/machine_stores.h"

namespace motley {
namespace {

constexpr const char* kSecretVariable = "MOTLEY_SECRET";
constexpr std::uint64_t kSecretBytesMax = 4096;
constexpr std::int64_t kMachinesMax = 256;

std::string environment_variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Erased, so that no worker inherits it and no other process reads it here.
std::string take_secret_variable() {
  char* const value = std::getenv(kSecretVariable);
  if (value == nullptr) return "";
  std::string secret = value;
  std::fill_n(value, secret.size(), ' ');
  ::unsetenv(kSecretVariable);
  return secret;
}

std::string without_spaces_around(std::string text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; };
  while (!text.empty() && is_space(text.back())) text.pop_back();
  const auto begin = std::ranges::find_if_not(text, is_space);
  return {begin, text.end()};
}

// The secret that all processes know; "" = none.
Result<std::string> shared_secret(const Arguments& arguments, std::string variable) {
  if (!arguments.has("secret-file")) return without_spaces_around(std::move(variable));
  const std::string& path = arguments.value("secret-file");
  MOTLEY_TRY(check_exists(path));
  MOTLEY_ASSIGN(std::string secret, read_input(path, kSecretBytesMax));
  secret = without_spaces_around(std::move(secret));
  if (secret.empty()) {
    return Error{ErrorCode::kUsage, fmt::format("{} is empty", path), "it must hold a secret",
                 "head -c 32 /dev/urandom | base64 > " + path};
  }

  struct stat facts {};

  const bool is_open = ::stat(path.c_str(), &facts) == 0 && facts.st_uid == ::geteuid() &&
                       (facts.st_mode & S_IROTH) != 0;
  if (is_open) Log("").warn(fmt::format("every user of this machine can read {}", path));
  return secret;
}

// Slurm may have several nodes on one host.
std::string own_machine_name() {
  const std::string node = environment_variable("SLURMD_NODENAME");
  return name_in_cluster(node.empty() ? local_machine().name : node);
}

// Of a process that waits for the one that joins.
Result<void> follow(const StartedProcess& process, const std::string& group, double wait_s) {
  Log("").info(
      fmt::format("process {} of {} by {}: waits for the process that joins for this machine, with "
                  "all of its devices, and ends with its status",
                  process.rank, process.processes, process.starter));
  MOTLEY_ASSIGN(const int status, follow_group(group, wait_s));
  if (status == 0) return {};
  return Error{static_cast<ErrorCode>(status), "the run has ended for this machine", "",
               "the process that joined for it says more"};
}

Result<void> check_options(const Arguments& arguments) {
  for (const char* other : {"invite", "dry-run"}) {
    if (!arguments.has(other)) continue;
    return Error{ErrorCode::kUsage, fmt::format("--from-env and --{} exclude each other", other),
                 "every process of the launcher gets the same command line",
                 "leave one of them out"};
  }
  return {};
}

Result<StartedProcess> read_process(const Arguments& arguments) {
  StarterFacts facts;
  if (arguments.has("machines")) {
    MOTLEY_ASSIGN(const auto machines, integer_value(arguments, "machines", 1, kMachinesMax));
    facts.machines = static_cast<int>(machines);
  }
  facts.own_host = full_host_name();
  return started_process(environment_variable, facts);
}

// The folder of the run, by the configuration, if that is here.
Result<std::optional<std::filesystem::path>> run_folder(const Arguments& arguments) {
  MOTLEY_ASSIGN(const bool exists, path_exists(arguments.operand(0)));
  if (!exists) return std::optional<std::filesystem::path>();
  MOTLEY_ASSIGN(const ResolvedConfig resolved, read_config(arguments.operand(0), arguments));
  return std::optional(absolute_normal_path(resolved.config.run.dir));
}

Result<void> lead_or_join(const Arguments& arguments,
                          const StartedProcess& process,
                          std::string secret) {
  MOTLEY_ASSIGN(const double wait_s, valid_s(arguments));
  if (process.rank == 0) {
    Invitation invitation(arguments, GroupHead{process, own_machine_name(), std::move(secret)});
    return run_training(arguments, &invitation);
  }
  MOTLEY_ASSIGN(const ListenPlace place, listen_place(arguments));
  MOTLEY_ASSIGN(const auto run_dir, run_folder(arguments));
  GroupMember member{process, own_machine_name(), std::move(secret), run_dir, place.port, wait_s};
  Result<void> done = join_as_member(member);
  wipe(member.secret);
  return done;
}

Result<void> launch_from_environment(const Arguments& arguments) {
  std::string variable = take_secret_variable();
  MOTLEY_TRY(check_options(arguments));
  MOTLEY_ASSIGN(std::string secret, shared_secret(arguments, std::move(variable)));
  MOTLEY_ASSIGN(const StartedProcess process, read_process(arguments));
  std::error_code ignored;
  const std::string group = process.group + "\n" + arguments.command_line({}, {}) + "\n" +
                            std::filesystem::current_path(ignored).string();
  if (process.local_rank > 0) {
    MOTLEY_ASSIGN(const double wait_s, valid_s(arguments));
    return follow(process, group, wait_s);
  }
  MOTLEY_ASSIGN(LocalGroup local, LocalGroup::lead(group, process.local_processes - 1));
  const Result<void> done = lead_or_join(arguments, process, std::move(secret));
  local.end(done.ok() ? 0 : static_cast<int>(done.error().code));
  return done;
}

std::vector<OptionSpec> launch_options() {
  std::vector<OptionSpec> options = train_options();
  for (OptionSpec& option : invite_options()) options.push_back(std::move(option));
  options.push_back(
      {"from-env", "", "be one of the processes that torchrun, mpirun, srun, … have started"});
  options.push_back({"machines", "N", "with --from-env: their number, if the launcher has none"});
  options.push_back({"secret-file", "FILE",
                     "with --from-env: a secret that all processes read (or MOTLEY_SECRET)"});
  return options;
}

Result<void> launch(const Arguments& arguments) {
  if (arguments.has("from-env")) return launch_from_environment(arguments);
  for (const char* option : {"machines", "secret-file"}) {
    if (!arguments.has(option)) continue;
    return Error{ErrorCode::kUsage, fmt::format("--{} needs --from-env", option), "",
                 "leave it out"};
  }
  if (arguments.has("invite")) {
    Invitation invitation(arguments, {});
    return run_training(arguments, &invitation);
  }
  if (arguments.has("cluster")) return run_training(arguments, nullptr);
  return Error{ErrorCode::kUsage, "motley launch needs --cluster FILE, --invite N or --from-env",
               "", "use motley train for this machine alone"};
}

}  // namespace

Command launch_command() {
  CommandSpec spec{
      "launch",
      "train on several machines, started from here",
      {"CONFIG"},
      launch_options(),
      "Starts a stage process on every machine of the plan, with the remote shell in its\n"
      "entry of the cluster file (ssh by default, with your own configuration), exchanges\n"
      "their addresses, and collects one log. When it ends, for whatever reason, no process\n"
      "is left over on any machine; if it is killed, the workers first save their step.\n"
      "After the loss of a process or a machine the run restarts\n"
      "automatically from the newest checkpoint, without machines that do not answer\n"
      "(run.restarts, 3 in a row).\n\n"
      "Motley must be installed on every machine; set motley_dir in the cluster file if its\n"
      "folder differs from the one here. A machine that does not see the run's folder stores\n"
      "its part in its own folder (docs/checkpoints.md).\n\n"
      "With --invite N it needs no remote shell: it prints a ticket, waits until N machines have\n"
      "joined with it (`motley join`), and trains on them, this machine and those of --cluster, "
      "if\n"
      "given. The machines get the files of the run from here.\n\n"
      "With --from-env another launcher starts this same command on every machine, once (or more\n"
      "often: then one process joins and the others wait). Process 0 trains; the others join it\n"
      "and end with the run's status. They find it in run.dir, if all see that folder; else give\n"
      "all a secret by --secret-file or MOTLEY_SECRET, and the address of process 0 by\n"
      "MASTER_ADDR. Its port is that of --listen, else MASTER_PORT + 1. If the folder has a run,\n"
      "it continues. Lines for torchrun, mpirun, srun, Ray, Dask and Kubernetes:\n"
      "docs/schedulers.md and examples/schedulers/\n\n"
      "Examples\n"
      "  motley launch gpt.toml --invite 2\n"
      "  motley launch gpt.toml --cluster home.toml\n"
      "  motley launch gpt.toml --cluster home.toml --set train.precision=bf16\n"
      "  motley launch gpt.toml --cluster home.toml --service\n"
      "  srun --ntasks-per-node=1 motley launch gpt.toml --from-env\n\n"
      "With --service systemd runs the launcher: it resumes the run after a crash or a reboot of\n"
      "this machine, and ends when the run is complete or needs the user. ssh must reach the\n"
      "machines without a password or an agent of the session (docs/failures.md).\n"};
  spec.needs = "--cluster FILE|--invite N|--from-env";
  return {spec, launch};
}

}  // namespace motley
