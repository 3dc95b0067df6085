#include "cli/init/allocation.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <utility>

#include "base/system/files.h"
#include "cli/init/host_list.h"

namespace motley {
namespace {

constexpr std::size_t kHostFileBytesMax = 1 << 20;

// Batch systems whose environment names a host file.
constexpr auto kHostFileVariables = std::to_array<std::pair<std::string_view, const char*>>({
    {"pbs", "PBS_NODEFILE"},
    {"lsf", "LSB_DJOB_HOSTFILE"},
    {"sge", "PE_HOSTFILE"},
});

Error not_in_job(std::string_view scheduler, std::string_view variable) {
  return {ErrorCode::kUsage, fmt::format("this process belongs to no job of {}", scheduler),
          fmt::format("{} is not set", variable),
          "run the command inside a job, or name a host file"};
}

double number_or_zero(const std::string& text) {
  int value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  return parsed.ec == std::errc() && value > 0 ? value : 0;
}

// A step of the job on one node, beside its other steps. srun would collect the output by lines.
std::vector<std::string> srun_on(const std::string& node, const std::string& job) {
  return {"srun",       "--jobid=" + job,     "--overlap",    "--nodes=1",
          "--ntasks=1", "--nodelist=" + node, "--unbuffered", "--quiet"};
}

Result<std::vector<AllocatedMachine>> of_slurm(const Environment& environment) {
  const std::string job = environment("SLURM_JOB_ID");
  const std::string nodes = environment("SLURM_JOB_NODELIST");
  if (job.empty()) return not_in_job("Slurm", "SLURM_JOB_ID");
  if (nodes.empty()) return not_in_job("Slurm", "SLURM_JOB_NODELIST");
  MOTLEY_ASSIGN(const std::vector<std::string> names, expand_host_list(nodes));
  std::vector<int> processors;
  if (const std::string text = environment("SLURM_JOB_CPUS_PER_NODE"); !text.empty()) {
    MOTLEY_ASSIGN(processors, expand_counts(text));
  }
  const double node_mib = number_or_zero(environment("SLURM_MEM_PER_NODE"));
  const double processor_mib = number_or_zero(environment("SLURM_MEM_PER_CPU"));
  const std::string here = environment("SLURMD_NODENAME");
  std::vector<AllocatedMachine> machines;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const double of_processors = i < processors.size() ? processor_mib * processors[i] : 0;
    const bool is_here = names[i] == here;
    machines.push_back({.host = names[i],
                        .shell = is_here ? std::vector<std::string>() : srun_on(names[i], job),
                        .memory_gib = (node_mib > 0 ? node_mib : of_processors) / 1024,
                        .is_here = is_here});
  }
  return machines;
}

Result<std::vector<AllocatedMachine>> of_host_file(const std::string& path) {
  MOTLEY_ASSIGN(const std::string text, read_file(path, kHostFileBytesMax));
  MOTLEY_ASSIGN(const std::vector<std::string> hosts, hosts_of_file(text));
  if (hosts.empty()) {
    return Error{ErrorCode::kConfig, fmt::format("{} names no hosts", path), "",
                 "write one host a line"};
  }
  std::vector<AllocatedMachine> machines;
  for (const std::string& host : hosts) machines.push_back({.host = host});
  return machines;
}

}  // namespace

Result<std::vector<AllocatedMachine>> allocated_machines(const std::string& source,
                                                         const Environment& environment) {
  if (source == "slurm") return of_slurm(environment);
  for (const auto& [scheduler, variable] : kHostFileVariables) {
    if (source != scheduler) continue;
    const std::string path = environment(variable);
    if (path.empty()) return not_in_job(scheduler, variable);
    return of_host_file(path);
  }
  MOTLEY_ASSIGN(const bool exists, path_exists(source));
  if (exists) return of_host_file(source);
  return Error{ErrorCode::kUsage,
               fmt::format("--from {}: there is no such scheduler or file", source), "",
               "give slurm, pbs, lsf, sge, or the path of a host file"};
}

}  // namespace motley
