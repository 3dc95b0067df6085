#include "plan/cluster/virtual_machines.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/json/json_fields.h"
#include "plan/cluster/device_models.h"

namespace motley {
namespace {

bool has_given_speed(const std::string& device) {
  return !capabilities_of(device).is_measured;
}

// Wide enough for any device, and narrow enough that times do not overflow.
constexpr double kSpeedMin = 1e-3;
constexpr double kSpeedMax = 1e12;

// The device model of the machine's simulated devices; nullptr if none is given. Makes its devices
// simulated, and sets their memory unless the file does.
Result<const DeviceModel*> read_device_model(TomlTable& table, Machine& machine) {
  MOTLEY_TRY(table.read("device_model", machine.device_model));
  if (!table.has("device_model")) return nullptr;
  const DeviceModel* model = find_device_model(machine.device_model);
  if (model == nullptr) {
    const std::string close = closest_device_model(machine.device_model);
    return table.bad("device_model",
                     fmt::format("unknown device model '{}'", excerpt(machine.device_model)),
                     (close.empty() ? "" : fmt::format("did you mean '{}'? ", close)) +
                         "docs/devices.md lists them; for another, write [machine.virtual]");
  }
  if (!table.has("devices")) machine.devices = {"virtual"};
  if (!std::ranges::all_of(machine.devices, has_given_speed)) {
    return table.bad("device_model",
                     "it is the speed of virtual devices, but others are listed here",
                     "write devices = [\"virtual\"], or leave device_model out");
  }
  if (!table.has("memory_gib")) {
    if (model->memory_gib == 0) {
      return table.bad("device_model",
                       fmt::format("'{}' exists with several sizes of memory", model->name),
                       "add memory_gib to the machine, for all its devices together");
    }
    machine.memory_gib = model->memory_gib * static_cast<double>(machine.devices.size());
  }
  return model;
}

// Reads [machine.virtual]; nullopt if it leaves the speed to the model.
Result<std::optional<VirtualSpeed>> read_own_speed(TomlTable& own, const DeviceModel* model) {
  VirtualSpeed speed;
  MOTLEY_TRY(own.read("tokens_per_s", speed.tokens_per_s, kSpeedMin, kSpeedMax));
  MOTLEY_TRY(own.read("gflops", speed.gflops, kSpeedMin, kSpeedMax));
  MOTLEY_TRY(own.finish());
  const bool says_neither = !own.has("tokens_per_s") && !own.has("gflops");
  if (says_neither && model != nullptr) return std::optional<VirtualSpeed>();
  if (own.has("tokens_per_s") == own.has("gflops")) {
    return own.bad("",
                   own.has("gflops") ? "'tokens_per_s' and 'gflops' exclude each other"
                                     : "it has no speed of a device",
                   "set one of tokens_per_s and gflops");
  }
  return std::optional(speed);
}

}  // namespace

Result<std::optional<VirtualSpeed>> read_virtual_speed(TomlTable& table, Machine& machine) {
  MOTLEY_ASSIGN(const DeviceModel* model, read_device_model(table, machine));
  MOTLEY_ASSIGN(auto own, table.table("virtual"));
  const auto count = std::ranges::count_if(machine.devices, has_given_speed);
  if (!own) {
    if (count == 0) return std::optional<VirtualSpeed>();
    if (model != nullptr) return std::optional<VirtualSpeed>();
    return table.bad("devices", "its virtual devices have no speed",
                     "add device_model = \"…\" (docs/devices.md), or [machine.virtual] with "
                     "tokens_per_s or gflops below it");
  }
  MOTLEY_ASSIGN(const auto speed, read_own_speed(*own, model));
  if (count != std::ssize(machine.devices)) {
    return own->bad(
        "", count == 0 ? "the machine has no virtual device" : "the machine also has other devices",
        "write devices = [\"virtual\"], or leave [machine.virtual] out");
  }
  if (machine.memory_gib == 0) {
    return own->bad("", "its virtual devices have no memory size",
                    "add memory_gib to the machine, for all its devices together");
  }
  return speed;
}

Result<void> check_all_virtual(const std::vector<Machine>& machines,
                               const std::vector<TomlTable>& tables) {
  const auto computes = [](const Machine& machine) { return capabilities_of(machine).computes; };
  const auto first = std::ranges::find_if_not(machines, computes);
  const auto real = std::ranges::find_if(machines, computes);
  if (first == machines.end() || real == machines.end()) return {};
  return tables[static_cast<std::size_t>(real - machines.begin())].bad(
      "", fmt::format("'{}' has real devices and '{}' virtual ones", real->name, first->name),
      "make all machines virtual, or none: only motley plan, profile, simulate and devices take "
      "both");
}

void remove_from_network(std::vector<Machine>& machines) {
  for (Machine& machine : machines) {
    if (capabilities_of(machine).computes) continue;
    machine.address.clear();
    machine.shell.clear();
    machine.interface.clear();
    machine.motley_dir.clear();
    machine.runs_dir.clear();
  }
}

}  // namespace motley
