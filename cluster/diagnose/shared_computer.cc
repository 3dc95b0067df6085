#include "cluster/diagnose/shared_computer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "plan/quantity_text.h"

namespace motley {

CoreSharers processes_of(const Machine& machine) {
  const auto serving = static_cast<int>(std::ranges::count_if(machine.devices, has_own_memory));
  return {static_cast<int>(machine.devices.size()) - serving, serving};
}

CoreSharers core_sharers(const Cluster& cluster, const Machine& machine) {
  if (machine.cpu_share > 0) return {.computing = 1};
  if (!machine.shell.empty()) return processes_of(machine);
  CoreSharers sharers;
  for (const Machine& other : cluster.machines) {
    const bool computes_here = other.shell.empty() && capabilities_of(other).computes;
    if (!computes_here || other.cpu_share > 0) continue;
    const CoreSharers its = processes_of(other);
    sharers.computing += its.computing;
    sharers.serving += its.serving;
  }
  return sharers;
}

std::vector<SharedComputer> shared_computers(const std::vector<FoundMachine>& found) {
  std::map<std::string, SharedComputer> by_id;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i].computer.empty()) continue;
    SharedComputer& computer = by_id[found[i].computer];
    computer.machines.push_back(i);
    computer.free_bytes = std::max(computer.free_bytes, found[i].computer_bytes);
    computer.granted_bytes += found[i].granted_bytes;
  }
  std::vector<SharedComputer> shared;
  for (auto& [id, computer] : by_id) {
    if (computer.machines.size() > 1) shared.push_back(std::move(computer));
  }
  std::ranges::sort(shared, {}, [](const SharedComputer& each) { return each.machines.front(); });
  return shared;
}

std::vector<double> memory_per_machine(const std::vector<FoundMachine>& found) {
  std::vector<double> fair;
  for (const FoundMachine& machine : found) {
    fair.push_back(machine.granted_bytes > 0 ? machine.granted_bytes : machine.free_bytes);
  }
  for (const SharedComputer& computer : shared_computers(found)) {
    double asked_bytes = 0;  // by machines without a limit
    for (const std::size_t i : computer.machines) {
      if (found[i].granted_bytes == 0) asked_bytes += found[i].free_bytes;
    }
    const double left_bytes = std::max(0.0, computer.free_bytes - computer.granted_bytes);
    if (asked_bytes <= left_bytes) continue;
    for (const std::size_t i : computer.machines) {
      if (found[i].granted_bytes == 0) fair[i] *= left_bytes / asked_bytes;
    }
  }
  return fair;
}

std::string shared_memory_text(const SharedComputer& computer,
                               const std::vector<FoundMachine>& found) {
  std::vector<std::string> names;
  for (const std::size_t i : computer.machines) names.push_back(found[i].name);
  const std::string subject = fmt::format("{} are one computer", fmt::join(names, ", "));
  if (!computer.is_overcommitted()) {
    return fmt::format("{} with {} of free memory", subject, bytes_text(computer.free_bytes));
  }
  return fmt::format("{} with {} of free memory, less than the {} that memory_gib grants", subject,
                     bytes_text(computer.free_bytes), bytes_text(computer.granted_bytes));
}

}  // namespace motley
