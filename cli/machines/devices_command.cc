// motley devices: the compute devices of this machine, or of each machine of a cluster.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/log.h"
#include "base/process/progress_line.h"
#include "base/text/text_table.h"
#include "cli/command.h"
#include "cli/inputs.h"
#include "cluster/diagnose/automatic_devices.h"
#include "partitioner/report/explain.h"
#include "plan/quantity_text.h"
#include "protocol/device_facts.h"

namespace motley {
namespace {

struct MachineDevices {
  std::string machine;
  std::string imagined;         // the device that its virtual devices simulate; "" = they are real
  std::set<std::string> asked;  // devices named in the cluster file
  std::optional<DevicesFound> found;
  std::optional<Error> failure;  // why `found` is empty
};

std::string or_dash(const std::string& text) {
  return text.empty() ? "-" : text;
}

std::string size_text(std::int64_t bytes) {
  return bytes == 0 ? "-" : bytes_text(static_cast<double>(bytes));
}

// The devices that "auto" selects are marked.
std::string devices_table(const DevicesFound& found) {
  std::vector<TextRow> rows = {
      {"", "device", "model", "memory", "free", "computes in", "capability", "driver"}};
  const std::vector<std::string> taken = automatic_devices(found, 1);
  for (const DeviceFacts& device : found.devices) {
    const bool is_taken = std::ranges::count(taken, device.name) > 0;
    rows.push_back({is_taken ? "*" : "", device.name, or_dash(device.model),
                    size_text(device.memory_bytes), size_text(device.free_bytes),
                    or_dash(fmt::format("{}", fmt::join(device.types, ", "))),
                    or_dash(device.capability), or_dash(device.driver)});
  }
  return aligned_table(rows);
}

std::string faults_text(const DevicesFound& found) {
  std::string text;
  const auto add = [&](const std::string& what, const DeviceFault& fault) {
    text += fmt::format("{}: {}\n  try: {}\n", what, fault.cause, fault.remedy);
  };
  for (const DeviceFacts& device : found.devices) {
    if (!device.fault.cause.empty()) {
      add(fmt::format("{} cannot compute", device.name), device.fault);
    } else if (is_untried_device(device.name)) {
      add(device.name, {kUntriedNotice, kUntriedRemedy});
    }
  }
  for (const MissingKind& missing : found.missing) {
    // A device that needs a library which was not configured is not reported as missing.
    const DeviceKind* const kind = find_device_kind(missing.kind);
    const bool is_announced = kind == nullptr || kind->is_announced;
    if (!is_announced && !missing.is_shown) continue;
    add(fmt::format("no {}", missing.kind), missing.fault);
  }
  return text;
}

// Devices in the cluster file that the machine does not have. REQUIRES: it responded.
std::vector<std::string> absent_devices(const MachineDevices& each) {
  std::vector<std::string> absent;
  for (const std::string& device : each.asked) {
    if (each.found->find(device) == nullptr) absent.push_back(device);
  }
  return absent;
}

std::string to_text(const MachineDevices& each, bool is_alone) {
  if (!each.imagined.empty()) return fmt::format("virtual, not queried: {}\n", each.imagined);
  const std::string title = is_alone ? "" : each.machine + "\n";
  if (each.failure) return fmt::format("{}{}", title, describe(*each.failure));
  const std::vector<std::string> absent = absent_devices(each);
  const std::string problem =
      absent.empty() ? ""
                     : fmt::format("{} of the cluster file {} not here\n", fmt::join(absent, ", "),
                                   absent.size() == 1 ? "is" : "are");
  return fmt::format("{}LibTorch {}\n\n{}\n{}{}", title, each.found->torch,
                     devices_table(*each.found), problem, faults_text(*each.found));
}

Json to_json(const std::vector<MachineDevices>& all) {
  Json machines = Json::object();
  for (const MachineDevices& each : all) {
    machines[each.machine] = each.found ? devices_to_json(*each.found) : Json(nullptr);
    if (!each.imagined.empty()) machines[each.machine] = {{"virtual", each.imagined}};
    if (!each.found) continue;
    machines[each.machine]["auto"] = automatic_devices(*each.found, 1);
    machines[each.machine]["absent"] = absent_devices(each);
  }
  return {{"machines", machines}};
}

Result<void> devices(const Arguments& arguments) {
  MOTLEY_ASSIGN(const Cluster cluster, read_cluster(arguments, 1, Mixture::kAllowed));
  const auto has_devices = [](const Machine& machine) {
    return capabilities_of(machine).is_measured;
  };
  std::filesystem::path program;
  if (std::ranges::any_of(cluster.machines, has_devices)) {
    MOTLEY_ASSIGN(program, stage_program());
  }
  std::vector<MachineDevices> all;
  Result<void> outcome;
  ProgressLine line("");
  const Log log("", LogLevel::kInfo, line.log_output());
  for (const Machine& machine : cluster.machines) {
    MachineDevices& each = all.emplace_back();
    each.machine = machine.name;
    if (!has_devices(machine)) {
      Cluster alone;
      alone.machines = {machine};
      each.imagined = fmt::format("{} with {:.4g} GiB", simulated_devices_text(alone, kFp32Dtype),
                                  machine.memory_gib);
      continue;
    }
    line.say(fmt::format("querying {}; a first start may take a minute", machine.name));
    if (!has_automatic_devices(machine)) {
      each.asked = {machine.devices.begin(), machine.devices.end()};
    }
    auto found =
        find_devices_of(machine, /*details=*/true, program, CommConfig().start_timeout_s, log);
    if (found.ok()) {
      each.found = *std::move(found);
      continue;
    }
    if (is_stop(found.error())) return found.error();
    each.failure = found.error();
    if (outcome.ok()) outcome = found.error();
  }
  line.clear();
  std::string text;
  for (const MachineDevices& each : all) {
    text += (text.empty() ? "" : "\n") + to_text(each, all.size() == 1);
  }
  std::fputs((arguments.has("json") ? to_json(all).dump(2) + "\n" : text).c_str(), stdout);
  std::fflush(stdout);
  return outcome;
}

}  // namespace

Command devices_command() {
  CommandSpec spec{
      "devices",
      "list the devices of this machine, or of all machines of a cluster",
      {},
      {cluster_option(), json_option()},
      "Starts a worker on each machine, which queries LibTorch: the device names for cluster\n"
      "files, their models and memory, the dtypes of their matrix products, a GPU's compute\n"
      "capability and the CUDA version of its driver. For a missing kind of device: the\n"
      "reason, and what to install. A star marks the devices that devices = [\"auto\"]\n"
      "selects: the accelerators, else the processor. Virtual machines are listed as the\n"
      "cluster file describes them.\n\n"
      "Exit status: 0 if every machine answered, else that of the first error.\n\n"
      "Examples\n"
      "  motley devices\n"
      "  motley devices --cluster home.toml --json\n"};
  return {spec, devices};
}

}  // namespace motley
