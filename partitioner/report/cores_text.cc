#include "partitioner/report/cores_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <vector>

namespace motley {
namespace {

// The cores of one computer, and their use by the plan's ranks.
struct ComputerCores {
  std::vector<std::string> machines;  // those on this computer
  double granted = 0;                 // to processes with a cpu_share
  double granted_busy = 0;
  double common = 0;  // shared by all other processes
  int workers = 0;    // number of these
  int threads = 0;

  void add(const Machine& machine, const RankPlan& rank, double cores) {
    if (std::ranges::find(machines, machine.name) == machines.end()) {
      machines.push_back(machine.name);
    }
    if (machine.cpu_share > 0) {
      granted += cores;
      granted_busy += std::min<double>(cores, rank.threads);
      return;
    }
    common = std::max(common, cores);
    workers += 1;
    threads += rank.threads;
  }

  [[nodiscard]] double all() const { return granted + common; }

  [[nodiscard]] double busy() const { return granted_busy + std::min<double>(common, threads); }
};

// In the order of the cluster; a machine on an unknown computer counts as one.
std::vector<ComputerCores> cores_of(const Plan& plan,
                                    const Cluster& cluster,
                                    const Profile& profile) {
  std::vector<ComputerCores> computers;
  std::map<std::string, std::size_t> index_of;
  for (const Machine& machine : cluster.machines) {
    for (const RankPlan& rank : plan.ranks) {
      const DeviceProfile* device = profile.find(rank.machine, rank.device);
      if (rank.machine != machine.name || device == nullptr) continue;
      if (!capabilities_of(rank.device).computes) continue;
      const std::string id =
          device->computer.empty() ? "machine " + machine.name : device->computer;
      const auto [known, is_new] = index_of.emplace(id, computers.size());
      if (is_new) computers.emplace_back();
      computers[known->second].add(machine, rank, device->cores);
    }
  }
  return computers;
}

}  // namespace

std::string cores_text(const Plan& plan, const Cluster& cluster, const Profile& profile) {
  double all = 0;
  double busy = 0;
  std::vector<std::string> idle;
  std::string crowded;
  for (const ComputerCores& computer : cores_of(plan, cluster, profile)) {
    all += computer.all();
    busy += computer.busy();
    const std::string machines = fmt::format("{}", fmt::join(computer.machines, ", "));
    const double left = computer.all() - computer.busy();
    if (left >= 1) idle.push_back(fmt::format("{:g} of {}", left, machines));
    if (computer.common > 0 && computer.threads > computer.common) {
      crowded += fmt::format("; {} worker{} the {:g} of {}", computer.workers,
                             computer.workers == 1 ? " of more threads has" : "s share",
                             computer.common, machines);
    }
  }
  if (all == 0) return "";
  if (idle.empty()) return fmt::format("cores     all {:g} compute{}\n", all, crowded);
  return fmt::format("cores     {:g} of {:g} compute; unused: {} (run.threads, threads){}\n", busy,
                     all, fmt::join(idle, ", "), crowded);
}

}  // namespace motley
