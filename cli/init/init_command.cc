// motley init: writes an initial cluster file and configuration.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "base/system/files.h"
#include "base/toml.h"
#include "cli/command.h"
#include "cli/init/allocation.h"
#include "cli/init/cluster_draft.h"
#include "cli/inputs.h"
#include "cli/local_machine.h"
#include "cli/output_file.h"
#include "plan/cluster.h"
#include "plan/cluster/cluster_file.h"
#include "run_config/config_io.h"

namespace motley {
namespace {

// The contents to write, from options or answers.
struct InitAnswers {
  std::string own_name;
  std::vector<DraftMachine> machines;  // as given; may include this machine
  bool are_all = false;                // those of a scheduler: this machine is not added
  std::string data;
  std::string run_dir;
};

std::string value_or(const Arguments& arguments, const char* option, const char* otherwise) {
  return arguments.has(option) ? arguments.value(option) : otherwise;
}

// Returns the answer, or `otherwise` if it is empty. kUsage at end of input.
Result<std::string> ask(const std::string& question, const std::string& otherwise) {
  fmt::print("{}{}: ", question, otherwise.empty() ? "" : fmt::format(" [{}]", otherwise));
  std::fflush(stdout);
  std::string answer;
  if (std::getline(std::cin, answer)) return answer.empty() ? otherwise : answer;
  fmt::print("\n");
  return Error{ErrorCode::kUsage, "standard input ended before all questions were answered",
               fmt::format("unanswered: {}", question),
               "nothing was written; Enter selects the default in brackets"};
}

// A loopback address means a different machine on each machine.
bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

// Expands "~/" as a shell does.
std::string with_home(const std::string& path) {
  const char* home = std::getenv("HOME");
  return home != nullptr && path.starts_with("~/") ? home + path.substr(1) : path;
}

Result<std::string> ask_for_data(const std::string& otherwise) {
  while (true) {
    MOTLEY_ASSIGN(const std::string answer,
                  ask("File or folder of text to train on, or a .bin of tokens (Enter: synthetic)",
                      otherwise));
    const std::string path = with_home(answer);
    std::error_code ignored;
    if (path == otherwise || std::filesystem::exists(path, ignored)) return path;
    fmt::print("{} does not exist.\n", path);
  }
}

// The reason why the machine cannot be added; "" = it can.
std::string objection(const std::vector<DraftMachine>& machines, const DraftMachine& machine) {
  if (std::ranges::find(machines, machine.name, &DraftMachine::name) != machines.end()) {
    return fmt::format("A machine named {} exists already.", machine.name);
  }
  if (is_loopback(host_of(machine.ssh))) return "";
  const auto address = address_of_host(host_of(machine.ssh));
  if (!address.ok()) return fmt::format("{}.", address.error().what);
  const auto same = std::ranges::find_if(machines, [&](const DraftMachine& other) {
    const auto theirs = address_of_host(host_of(other.ssh));
    return theirs.ok() && *theirs == *address;
  });
  if (same == machines.end()) return "";
  return fmt::format("{} is at {} already.", same->name, *address);
}

// Repeats the question after an unusable answer, so that earlier answers are not lost.
Result<InitAnswers> ask_all(InitAnswers init_answers) {
  fmt::print("Defaults are in brackets; Enter selects them.\n");
  MOTLEY_ASSIGN(const std::string own_name, ask("Name of this machine", init_answers.own_name));
  init_answers.own_name = to_machine_name(own_name);
  while (true) {
    MOTLEY_ASSIGN(
        const std::string where,
        ask("Address of another machine, or USER@ADDRESS if the user name differs (Enter: no more)",
            ""));
    if (where.empty()) break;
    const std::string host = host_of(where);
    const bool is_number = host.find_first_not_of("0123456789.:abcdef") == std::string::npos;
    MOTLEY_ASSIGN(
        const std::string name,
        ask("Its name", is_number ? fmt::format("machine{}", init_answers.machines.size() + 2)
                                  : to_machine_name(host)));
    auto machine = parse_draft_machine(name + "=" + where);
    if (!machine.ok()) {
      fmt::print("'{}' at '{}' is not a machine: a name and an address are one word each.\n",
                 excerpt(name), excerpt(where));
      continue;
    }
    const std::string why_not = objection(init_answers.machines, *machine);
    if (why_not.empty()) {
      init_answers.machines.push_back(std::move(machine).value());
    } else {
      fmt::print("{}\n", why_not);
    }
  }
  MOTLEY_ASSIGN(init_answers.data, ask_for_data(init_answers.data));
  MOTLEY_ASSIGN(const std::string run_dir, ask("Folder of the run", init_answers.run_dir));
  init_answers.run_dir = with_home(run_dir);
  return init_answers;
}

std::string environment_variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// The machines of a scheduler or host file.
Result<std::vector<DraftMachine>> machines_from(const std::string& source) {
  MOTLEY_ASSIGN(const auto allocated, allocated_machines(source, environment_variable));
  std::vector<DraftMachine> machines;
  for (const AllocatedMachine& each : allocated) {
    machines.push_back({.name = to_machine_name(each.host),
                        .ssh = each.is_here ? "localhost" : each.host,
                        .shell = each.shell,
                        .memory_gib = each.memory_gib});
  }
  return machines;
}

Result<InitAnswers> read_init_answers(const Arguments& arguments, const LocalMachine& here) {
  InitAnswers init_answers;
  init_answers.own_name = here.name.empty() ? "here" : to_machine_name(here.name);
  init_answers.data = value_or(arguments, "data", "");
  init_answers.run_dir = value_or(arguments, "run", "runs/first");
  for (const std::string& text : arguments.values("machine")) {
    MOTLEY_ASSIGN(DraftMachine machine, parse_draft_machine(text));
    init_answers.machines.push_back(std::move(machine));
  }
  if (arguments.has("from")) {
    MOTLEY_ASSIGN(init_answers.machines, machines_from(arguments.value("from")));
    init_answers.are_all = true;
    return init_answers;
  }
  const bool asks =
      arguments.has("ask") || (init_answers.machines.empty() && ::isatty(STDIN_FILENO) == 1);
  if (asks) return ask_all(std::move(init_answers));
  return init_answers;
}

// Resolves names to addresses, and adds this machine at the front if it was not named.
Result<std::vector<DraftMachine>> complete(const InitAnswers& init_answers,
                                           const LocalMachine& here) {
  std::vector<DraftMachine> machines = init_answers.machines;
  std::vector<std::string> peers;
  bool has_own = false;
  for (DraftMachine& machine : machines) {
    const std::string host = host_of(machine.ssh);
    bool is_own = is_loopback(host) || host == here.name;
    if (!is_own) {
      MOTLEY_ASSIGN(machine.address, address_of_host(host));
      is_own = here.addresses.contains(machine.address);
    }
    has_own = has_own || is_own;
    if (!is_own) {
      if (std::ranges::find(peers, machine.address) != peers.end()) {
        return Error{ErrorCode::kUsage, fmt::format("two machines are at {}", machine.address),
                     fmt::format("{} is one of them", machine.name), "give each machine once"};
      }
      peers.push_back(machine.address);
    }
    if (is_own || machine.ssh == machine.address || !machine.shell.empty()) machine.ssh.clear();
    if (is_own) machine.shell.clear();
  }
  if (!has_own && !init_answers.are_all)
    machines.insert(machines.begin(), {.name = init_answers.own_name});
  if (machines.size() == 1) return machines;
  for (DraftMachine& machine : machines) {
    if (!machine.address.empty()) continue;
    MOTLEY_ASSIGN(machine.address, own_address(peers));
  }
  return machines;
}

void print_next(const std::string& cluster_file,
                const std::string& config_file,
                const std::string& run_dir,
                const Cluster& cluster,
                bool is_made_up) {
  const std::string places = starting_folders(cluster);
  fmt::print("wrote {}: {}\nwrote {}{}\n\nnext\n", cluster_file,
             places.empty() ? "this machine" : places, config_file,
             is_made_up ? ", with synthetic data; for your text use --data FILE" : "");
  if (cluster.machines.size() == 1) {
    fmt::print("  motley train {}\n", config_file);
    return;
  }
  fmt::print(
      "  motley doctor --cluster {0} --run {2}\n  motley plan {1} --cluster {0}\n"
      "  motley launch {1} --cluster {0}\n",
      cluster_file, config_file, run_dir);
}

// Whether a configuration is written too: not for a scheduler's machines alone, which change from
// job to job.
bool writes_config(const Arguments& arguments) {
  return !arguments.has("from") || arguments.has("config") || arguments.has("data") ||
         arguments.has("run");
}

Result<void> check_options(const Arguments& arguments) {
  if (!arguments.has("from") || !(arguments.has("machine") || arguments.has("ask"))) return {};
  return Error{ErrorCode::kUsage, "--from excludes --machine and --ask", "it names all machines",
               "leave one of them out"};
}

Result<void> init(const Arguments& arguments) {
  MOTLEY_TRY(check_options(arguments));
  const std::string cluster_file = value_or(arguments, "cluster", "cluster.toml");
  const std::string config_file = value_or(arguments, "config", "train.toml");
  MOTLEY_TRY(check_new_output(cluster_file));
  if (writes_config(arguments)) MOTLEY_TRY(check_new_output(config_file));
  const LocalMachine here = local_machine();
  MOTLEY_ASSIGN(const InitAnswers init_answers, read_init_answers(arguments, here));
  if (!init_answers.data.empty()) MOTLEY_TRY(check_exists(init_answers.data));
  MOTLEY_ASSIGN(const auto machines, complete(init_answers, here));
  const std::string cluster_text = cluster_draft(machines);
  MOTLEY_ASSIGN(const Cluster cluster, parse_cluster(cluster_text, cluster_file, here));
  if (!writes_config(arguments)) {
    MOTLEY_TRY(write_new_output(cluster_file, cluster_text));
    const std::string places = starting_folders(cluster);
    fmt::print("wrote {}: {}\n", cluster_file, places.empty() ? "this machine" : places);
    return {};
  }
  MOTLEY_ASSIGN(const std::string config_text,
                config_draft(init_answers.data, init_answers.run_dir));
  MOTLEY_ASSIGN([[maybe_unused]] const auto resolved,
                resolve_config(config_text, config_file, {}, {}));
  MOTLEY_TRY(write_new_output(cluster_file, cluster_text));
  MOTLEY_TRY(write_new_output(config_file, config_text));
  print_next(cluster_file, config_file, init_answers.run_dir, cluster, init_answers.data.empty());
  return {};
}

}  // namespace

Command init_command() {
  CommandSpec spec{
      "init",
      "write a first cluster file and configuration",
      {},
      {{"machine", "NAME=ADDRESS", "another machine: NAME=ADDRESS or NAME=USER@ADDRESS", true},
       {"from", "SOURCE",
        "all machines from the job of a scheduler (slurm, pbs, lsf, sge) or a host file"},
       {"data", "PATH", "text to train on, or a .bin of tokens (default: synthetic tokens)"},
       {"run", "DIR", "the run's folder (default: runs/first)"},
       {"cluster", "FILE", "path of the cluster file (default: cluster.toml)"},
       {"config", "FILE", "path of the configuration (default: train.toml)"},
       {"ask", "", "ask for the values, as without --machine on a terminal"}},
      "Finds this machine's name and its address on the network of the others, and writes\n"
      "two files that work unchanged. Host names become addresses; ssh uses the name.\n"
      "Existing files are never overwritten.\n\n"
      "With --from, the machines are those of the scheduler's job or of mpirun's host file, and\n"
      "only the cluster file is written unless --config, --data or --run is given. Slurm's nodes\n"
      "are started by srun, others by ssh: docs/schedulers.md\n\n"
      "Tutorial with two machines: docs/first-cluster.md\n\n"
      "Example\n"
      "  motley init --machine oldbox=192.168.1.11 --data ~/texts --run ~/runs/first\n"
      "  motley init --from slurm --cluster cluster-$SLURM_JOB_ID.toml\n"};
  return {spec, init};
}

}  // namespace motley
