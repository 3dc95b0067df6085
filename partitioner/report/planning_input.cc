#include "partitioner/report/planning_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/check.h"
#include "plan/units.h"

namespace motley {
namespace {

const Machine& machine_named(const Cluster& cluster, const std::string& name) {
  const Machine* machine = cluster.find(name);
  MOTLEY_CHECK(machine != nullptr, "no machine is named '{}'", name);
  return *machine;
}

std::string free_name(const Cluster& cluster, const std::string& name) {
  int number = 2;
  const auto is_taken = [&](const std::string& free) {
    return cluster.find(free) != nullptr ||
           std::ranges::any_of(cluster.links, [&](const auto& link) {
             return link.from == free || link.to == free;
           });
  };
  while (is_taken(fmt::format("{}-{}", name, number))) ++number;
  return fmt::format("{}-{}", name, number);
}

bool all_have_own_memory(const Machine& machine) {
  return std::ranges::all_of(machine.devices, has_own_memory);
}

}  // namespace

Result<Plan> make_plan(const PlanningInput& input) {
  return make_plan(input.model, input.cluster, input.profile, input.options);
}

double machine_memory_gib(const PlanningInput& input, const std::string& machine) {
  const Machine& found = machine_named(input.cluster, machine);
  const bool is_set = found.memory_gib > 0 && !all_have_own_memory(found);
  return is_set ? found.memory_gib : measured_memory_gib(input, machine);
}

PlanningInput with_machine_memory(PlanningInput input, const std::string& machine, double gib) {
  const bool is_own = all_have_own_memory(machine_named(input.cluster, machine));
  for (Machine& each : input.cluster.machines) {
    if (each.name == machine) each.memory_gib = gib;
  }
  for (DeviceProfile& each : input.profile.devices) {
    if (is_own && each.machine == machine) {
      each.memory_bytes = static_cast<std::int64_t>(gib * kBytesPerGib);
    }
  }
  return input;
}

double measured_memory_gib(const PlanningInput& input, const std::string& machine) {
  const Machine& found = machine_named(input.cluster, machine);
  const auto shared = std::ranges::find_if_not(found.devices, has_own_memory);
  const DeviceProfile* profile =
      input.profile.find(machine, shared != found.devices.end() ? *shared : found.devices.front());
  return profile == nullptr ? 0 : static_cast<double>(profile->memory_bytes) / kBytesPerGib;
}

PlanningInput without_machine(PlanningInput input, const std::string& machine) {
  Cluster& cluster = input.cluster;
  MOTLEY_CHECK(cluster.find(machine) != nullptr && cluster.machines.size() > 1,
               "cannot take '{}' out of {} machines", machine, cluster.machines.size());
  std::erase_if(cluster.machines, [&](const Machine& m) { return m.name == machine; });
  // The entries of its links document the network speeds of the others.
  for (const Machine& other : cluster.machines) {
    for (const auto& ends : {std::pair(machine, other.name), {other.name, machine}}) {
      const auto is_it = [&](const LinkOverride& l) { return std::pair(l.from, l.to) == ends; };
      if (std::ranges::any_of(cluster.links, is_it)) continue;
      cluster.links.push_back({ends.first, ends.second, cluster.network});
    }
  }
  // Pins on a machine that is gone are dropped.
  Pins& pins = input.options.pins;
  std::erase_if(pins.layers, [&](const Pins::LayerPin& pin) { return pin.machine == machine; });
  std::erase(pins.never, machine);
  std::erase(pins.always, machine);
  pins.memory_share.erase(machine);
  return input;
}

PlanningInput with_duplicate(PlanningInput input, const std::string& machine) {
  Cluster& cluster = input.cluster;
  Machine twin = machine_named(cluster, machine);
  twin.name = free_name(cluster, machine);
  const std::vector<LinkOverride> links = cluster.links;
  for (const LinkOverride& link : links) {
    if (link.from == machine) cluster.links.push_back({twin.name, link.to, link.speed});
    if (link.to == machine) cluster.links.push_back({link.from, twin.name, link.speed});
  }
  const std::vector<DeviceProfile> devices = input.profile.devices;
  for (DeviceProfile device : devices) {
    if (device.machine != machine) continue;
    device.machine = twin.name;
    device.computer.clear();  // the twin is a computer of its own
    input.profile.devices.push_back(std::move(device));
  }
  auto& memory_shares = input.options.pins.memory_share;
  if (const auto share = memory_shares.find(machine); share != memory_shares.end()) {
    memory_shares.emplace(twin.name, share->second);
  }
  cluster.machines.push_back(std::move(twin));
  return input;
}

}  // namespace motley
