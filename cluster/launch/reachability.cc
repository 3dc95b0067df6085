#include "cluster/launch/reachability.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <utility>
#include <vector>

#include "base/process/stop_signals.h"
#include "base/system/shell_word.h"
#include "cluster/launch/worker_command.h"
#include "cluster/launch/workers.h"
#include "plan/cluster/joined_shell.h"

namespace motley {
namespace {

// The machines with a failure, and the reasons.
struct Troubles {
  std::vector<const Machine*> machines;
  std::vector<std::string> words;  // "NAME: …"

  void add(const Machine& machine, const std::string& problem) {
    machines.push_back(&machine);
    words.push_back(fmt::format("{}: {}", machine.name, problem));
  }

  [[nodiscard]] std::string names() const {
    std::vector<std::string> names;
    for (const Machine* machine : machines) names.push_back(machine->name);
    return fmt::format("{}", fmt::join(names, ", "));
  }
};

std::string with_words(std::string problem, const MachineResponse& answer) {
  return answer.words.empty() ? problem : problem + ": " + answer.words;
}

// Why the machine cannot be used.
std::optional<std::string> problem_of(const MachineResponse& answer,
                                      const std::filesystem::path& program) {
  if (!answer.problem.empty()) return with_words(answer.problem, answer);
  if (answer.status == 0) return {};
  return fmt::format("no executable program {} there", program.string());
}

Error cannot_be_used(const Troubles& troubles) {
  std::vector<std::string> commands;
  for (const Machine* machine : troubles.machines) {
    if (!is_ssh(machine->shell)) continue;
    commands.push_back(fmt::format("'{} true'", fmt::join(machine->shell, " ")));
  }
  const std::string ssh_remedy = commands.empty()
                                     ? ""
                                     : fmt::format("{} must work without asking for a password; ",
                                                   fmt::join(commands, " and "));
  return {
      ErrorCode::kPeer,
      fmt::format("{} cannot be used: {}",
                  troubles.machines.size() == 1 ? "a machine" : "some machines", troubles.names()),
      fmt::format("{}", fmt::join(troubles.words, "; ")),
      fmt::format("{}run 'motley doctor' for details; set 'motley_dir' in the cluster file to the "
                  "folder of the program; remove machines that are off from the file",
                  ssh_remedy)};
}

// The expected answer to the query about a package.
std::string right_answer(const FolderFingerprint& package) {
  return fmt::format("{}  -\n{}\n", package.small_sha256, package.large_bytes);
}

Error package_not_seen(const Troubles& troubles, const FolderFingerprint& package) {
  const std::string folder = quote_for_shell(package.folder.string());
  std::string remedy =
      "copy the folder there under the same path, or put it where all machines see it:";
  for (const Machine* machine : troubles.machines) {
    const auto unpack = remote_command(machine->shell, {"tar", "-xPf", "-"});
    std::vector<std::string> words;
    for (const std::string& word : unpack) words.push_back(quote_for_shell(word));
    remedy += fmt::format("\ntar -cPf - {} | {}", folder, fmt::join(words, " "));
  }
  return {ErrorCode::kConfig,
          fmt::format("the package {} is not on {}", package.folder.string(), troubles.names()),
          fmt::format("{}; every machine reads it for itself", fmt::join(troubles.words, "; ")),
          std::move(remedy)};
}

}  // namespace

Result<std::map<std::string, std::string>> find_unusable(const Cluster& cluster,
                                                         const std::set<std::string>& machines,
                                                         const std::filesystem::path& program,
                                                         double answer_s) {
  StopSignals signals;
  return find_unusable(cluster, machines, program, answer_s,
                       {signals.fd(), [&] { return signals.take(); }});
}

Result<std::map<std::string, std::string>> find_unusable(const Cluster& cluster,
                                                         const std::set<std::string>& machines,
                                                         const std::filesystem::path& program,
                                                         double answer_s,
                                                         const QueryInterrupt& interrupt) {
  std::vector<MachineQuery> questions;
  for (const Machine& machine : cluster.machines) {
    if (!machines.contains(machine.name)) continue;
    if (machine.shell.empty() && machine.motley_dir.empty()) continue;
    const std::filesystem::path there = stage_program_on(machine, program);
    questions.push_back(
        {&machine, {"test", "-x", there.string()}, {"has", there.filename().string()}});
  }
  MOTLEY_ASSIGN(const auto answers, query_machines(questions, answer_s, interrupt));
  std::map<std::string, std::string> unusable;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const auto problem = problem_of(answers[i], questions[i].command.back());
    if (problem) unusable.emplace(questions[i].machine->name, *problem);
  }
  return unusable;
}

Result<void> check_devices(const Cluster& cluster, const std::set<std::string>& machines) {
  for (const Machine& machine : cluster.machines) {
    if (!machines.contains(machine.name) || has_automatic_devices(machine)) continue;
    for (const std::string& device : machine.devices) MOTLEY_TRY(check_device(device));
  }
  return {};
}

Result<void> check_reachable(const Cluster& cluster,
                             const std::set<std::string>& machines,
                             const std::filesystem::path& program,
                             double answer_s) {
  MOTLEY_TRY(check_devices(cluster, machines));
  MOTLEY_ASSIGN(const auto unusable, find_unusable(cluster, machines, program, answer_s));
  if (unusable.empty()) return {};
  Troubles troubles;
  for (const Machine& machine : cluster.machines) {
    const auto found = unusable.find(machine.name);
    if (found != unusable.end()) troubles.add(machine, found->second);
  }
  return cannot_be_used(troubles);
}

Result<void> check_package_seen(const Cluster& cluster,
                                const std::set<std::string>& machines,
                                const FolderFingerprint& package,
                                double answer_s) {
  // Exit status 3 where a file cannot be read.
  constexpr const char* kAsk =
      R"(test -r "$1" && test -r "$2" || exit 3; sha256sum <"$1" && stat -L -c %s "$2")";
  std::vector<MachineQuery> questions;
  for (const Machine& machine : cluster.machines) {
    if (!machines.contains(machine.name) || machine.shell.empty()) continue;
    if (joined_shell(machine.shell)) continue;  // has got it from here
    questions.push_back({&machine,
                         {"sh", "-c", kAsk, "sh", (package.folder / package.small_file).string(),
                          (package.folder / package.large_file).string()}});
  }
  MOTLEY_ASSIGN(const auto answers, query_machines(questions, answer_s));
  Troubles unreachable;
  Troubles without;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const MachineResponse& answer = answers[i];
    const Machine& machine = *questions[i].machine;
    if (!answer.problem.empty()) {
      unreachable.add(machine, with_words(answer.problem, answer));
    } else if (answer.status == 3) {
      without.add(machine, "it is not there");
    } else if (answer.status != 0) {
      unreachable.add(machine, with_words("its files cannot be compared there", answer));
    } else if (answer.said != right_answer(package)) {
      without.add(machine, "another one is there under this path");
    }
  }
  if (!unreachable.machines.empty()) return cannot_be_used(unreachable);
  if (without.machines.empty()) return {};
  return package_not_seen(without, package);
}

}  // namespace motley
