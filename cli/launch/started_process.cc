#include "cli/launch/started_process.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <utility>
#include <vector>

#include "cli/init/host_list.h"

namespace motley {
namespace {

constexpr std::int64_t kProcessesMax = 1 << 20;
constexpr std::int64_t kPortMax = 65535;
constexpr std::int64_t kJobMax = std::int64_t{1} << 40;
// The head's port if the launcher names none; in a job of Slurm, other jobs of a node have others.
constexpr std::uint16_t kUsualPort = 29600;
constexpr std::int64_t kJobPorts = 4096;

Error bad_variable(const std::string& name, const std::string& cause) {
  return {ErrorCode::kUsage, fmt::format("{} does not describe a process", name), cause,
          "start every process by the same launcher; docs/schedulers.md lists the variables"};
}

// A variable that must be a whole number in [low, high].
Result<int> number(const Environment& environment,
                   const char* name,
                   std::int64_t low,
                   std::int64_t high) {
  const std::string text = environment(name);
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [next, code] = std::from_chars(text.data(), end, value);
  if (text.empty()) return bad_variable(name, "it is not set");
  if (code != std::errc{} || next != end || value < low || value > high) {
    return bad_variable(
        name, fmt::format("it is '{}', not a number from {} to {}", excerpt(text), low, high));
  }
  return static_cast<int>(value);
}

// Names of variables.
struct Variables {
  const char* starter;
  const char* rank;
  const char* processes;
  const char* local_rank;
  const char* local_processes;
};

constexpr Variables kTorchrun = {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK",
                                 "LOCAL_WORLD_SIZE"};
// Any program that sets the same variables, such as a task of Ray.
constexpr Variables kLikeTorchrun = {"its launcher", "RANK", "WORLD_SIZE", "LOCAL_RANK",
                                     "LOCAL_WORLD_SIZE"};
constexpr Variables kOpenMpi = {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                                "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"};
constexpr Variables kPmi = {"mpiexec", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID",
                            "MPI_LOCALNRANKS"};
constexpr Variables kSlurm = {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", ""};
constexpr Variables kIndexedJob = {"the indexed Job", "JOB_COMPLETION_INDEX", "WORLD_SIZE", "", ""};

bool is_set(const Environment& environment, const char* name) {
  return *name != '\0' && !environment(name).empty();
}

// srun sets the variables of PMI too, but not those of the processes on a node. mpiexec of MPICH
// starts a proxy on each node by srun, so that Slurm's variables describe the proxies.
bool is_of_srun(const Environment& environment) {
  return environment("PMI_RANK") == environment("SLURM_PROCID") &&
         environment("PMI_SIZE") == environment("SLURM_STEP_NUM_TASKS");
}

Result<Variables> starter_of(const Environment& environment) {
  if (is_set(environment, "RANK")) {
    return is_set(environment, "TORCHELASTIC_RUN_ID") ? kTorchrun : kLikeTorchrun;
  }
  if (is_set(environment, "OMPI_COMM_WORLD_RANK")) return kOpenMpi;
  if (is_set(environment, "PMI_RANK") && !is_of_srun(environment)) return kPmi;
  const bool is_step = is_set(environment, "SLURM_STEP_NUM_TASKS");
  if (is_step && is_set(environment, "SLURM_PROCID")) return kSlurm;
  if (is_set(environment, "JOB_COMPLETION_INDEX")) return kIndexedJob;
  if (is_set(environment, "SLURM_JOB_ID")) {
    return Error{ErrorCode::kUsage, "srun has not started this process",
                 "it belongs to a job of Slurm, but to none of its steps",
                 "write srun before the command, with one task on each node"};
  }
  return Error{
      ErrorCode::kUsage, "no launcher of processes has started this one",
      "none of RANK, OMPI_COMM_WORLD_RANK, PMI_RANK, SLURM_PROCID, JOB_COMPLETION_INDEX is set",
      "start it by torchrun, mpirun or srun, or set RANK, WORLD_SIZE and MASTER_ADDR"};
}

// Slurm gives the numbers of tasks as a list over the nodes of the step: "2(x3),1".
Result<int> tasks_of_node(const Environment& environment) {
  const char* const list = is_set(environment, "SLURM_STEP_TASKS_PER_NODE")
                               ? "SLURM_STEP_TASKS_PER_NODE"
                               : "SLURM_TASKS_PER_NODE";
  MOTLEY_ASSIGN(const int node, number(environment, "SLURM_NODEID", 0, kProcessesMax));
  const auto counts = expand_counts(environment(list));
  if (!counts.ok() || static_cast<std::size_t>(node) >= counts->size()) {
    return bad_variable(
        list, fmt::format("it is '{}', without node {}", excerpt(environment(list)), node));
  }
  return (*counts)[static_cast<std::size_t>(node)];
}

Result<void> read_local(const Environment& environment,
                        const Variables& names,
                        StartedProcess& process) {
  if (is_set(environment, names.local_rank)) {
    MOTLEY_ASSIGN(process.local_rank,
                  number(environment, names.local_rank, 0, process.processes - 1));
  }
  if (is_set(environment, "SLURM_NODEID") && std::string_view(names.starter) == "srun") {
    MOTLEY_ASSIGN(process.local_processes, tasks_of_node(environment));
  } else if (is_set(environment, names.local_processes)) {
    MOTLEY_ASSIGN(process.local_processes,
                  number(environment, names.local_processes, 1, process.processes));
  }
  if (process.local_rank < process.local_processes) return {};
  return bad_variable(names.local_rank, fmt::format("it is {}, and this machine has {} processes",
                                                    process.local_rank, process.local_processes));
}

// The pod with index 0: pods are called NAME-INDEX, in the domain of their service.
std::string first_pod(const std::string& own_host, int index) {
  const std::size_t dot = std::min(own_host.find('.'), own_host.size());
  const std::string ending = fmt::format("-{}", index);
  const std::string name = own_host.substr(0, dot);
  if (!name.ends_with(ending)) return "";
  return name.substr(0, name.size() - ending.size()) + "-0" + own_host.substr(dot);
}

Result<std::string> head_of(const Environment& environment,
                            const StartedProcess& process,
                            const StarterFacts& facts) {
  if (const std::string given = environment("MASTER_ADDR"); !given.empty()) {
    if (is_host_name(given)) return given;
    return bad_variable("MASTER_ADDR", fmt::format("'{}' is not a host", excerpt(given)));
  }
  for (const char* name : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"}) {
    const auto nodes = expand_host_list(environment(name));
    if (nodes.ok()) return nodes->front();
  }
  if (process.starter == kIndexedJob.starter) return first_pod(facts.own_host, process.rank);
  return std::string();
}

// The launcher's own port is taken, by its store.
Result<std::uint16_t> port_of_head(const Environment& environment) {
  if (is_set(environment, "MASTER_PORT")) {
    MOTLEY_ASSIGN(const int port, number(environment, "MASTER_PORT", 1, kPortMax));
    return static_cast<std::uint16_t>(port == kPortMax ? port - 1 : port + 1);
  }
  const std::string job = environment("SLURM_JOB_ID");
  std::int64_t id = 0;
  const auto parsed = std::from_chars(job.data(), job.data() + job.size(), id);
  const bool is_job = !job.empty() && parsed.ec == std::errc{} && id >= 0 && id < kJobMax;
  return static_cast<std::uint16_t>(kUsualPort + (is_job ? id % kJobPorts : 0));
}

// Variables that the processes of one start on one machine share; a machine may have several such
// groups, of different jobs or of nodes that are simulated on it.
std::string group_of(const Environment& environment, const StartedProcess& process) {
  std::string text = process.starter;
  for (const char* name : {"MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID",
                           "TORCHELASTIC_RESTART_COUNT", "PMIX_NAMESPACE", "SLURM_JOB_ID",
                           "SLURM_STEP_ID", "SLURM_NODEID", "JOB_COMPLETION_INDEX"}) {
    text += fmt::format("\n{}={}", name, environment(name));
  }
  // torchrun's processes have consecutive numbers on each machine.
  if (is_set(environment, "RANK")) {
    text += fmt::format("\nfirst={}", process.rank - process.local_rank);
  }
  return text;
}

}  // namespace

Result<StartedProcess> started_process(const Environment& environment, const StarterFacts& facts) {
  MOTLEY_ASSIGN(const Variables names, starter_of(environment));
  StartedProcess process;
  process.starter = names.starter;
  const bool is_counted = facts.machines == 0;
  if (is_counted && process.starter == kIndexedJob.starter &&
      !is_set(environment, names.processes)) {
    return Error{ErrorCode::kUsage, "the number of machines is not known",
                 "Kubernetes tells a pod its own number only",
                 "give --machines N, or set WORLD_SIZE to the Job's completions"};
  }
  MOTLEY_ASSIGN(process.processes, is_counted
                                       ? number(environment, names.processes, 1, kProcessesMax)
                                       : Result<int>(static_cast<int>(kProcessesMax)));
  MOTLEY_ASSIGN(process.rank, number(environment, names.rank, 0, process.processes - 1));
  MOTLEY_TRY(read_local(environment, names, process));
  if (!is_counted) process.processes = facts.machines;
  process.places = is_counted ? process.local_processes : 1;
  if (process.rank == 0 && process.local_rank > 0) {
    return bad_variable(names.local_rank, "process 0 is not the first one of its machine");
  }
  MOTLEY_ASSIGN(process.head, head_of(environment, process, facts));
  MOTLEY_ASSIGN(process.port, port_of_head(environment));
  process.group = group_of(environment, process);
  return process;
}

}  // namespace motley
