#include "cluster/diagnose/automatic_devices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "cluster/launch/worker_group.h"
#include "cluster/launch/workers.h"

namespace motley {
namespace {

constexpr const char* kProcessor = "cpu";

WorkerSpec devices_worker(const Machine& machine,
                          bool details,
                          const std::filesystem::path& program) {
  WorkerSpec worker{machine.name, machine, stage_program_on(machine, program), {}};
  worker.job.verb = "devices";
  worker.job.options = Json{{"details", details}};
  return worker;
}

// One answer per worker.
Result<std::vector<DevicesFound>> ask(std::vector<WorkerSpec> workers,
                                      double start_timeout_s,
                                      const Log& log) {
  std::vector<std::string> names;
  names.reserve(workers.size());
  for (const WorkerSpec& worker : workers) names.push_back(worker.name);
  std::vector<std::optional<DevicesFound>> answers(workers.size());
  WorkerGroup group(std::move(workers), {.start_timeout_s = start_timeout_s}, log);
  MOTLEY_TRY(group.run([&](int worker, const Json& event) -> Result<void> {
    if (event.value("event", "") != "devices") return {};
    const auto index = static_cast<std::size_t>(worker);
    const JsonSource source(fmt::format("the devices of {}", names[index]));
    MOTLEY_ASSIGN(answers[index], devices_from_json(JsonFields(event, source, ErrorCode::kPeer)));
    return {};
  }));
  std::vector<DevicesFound> found;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (!answers[i]) {
      return Error{ErrorCode::kPeer, fmt::format("{} did not report its devices", names[i]), "",
                   "use the same version of Motley on every machine"};
    }
    found.push_back(*std::move(answers[i]));
  }
  return found;
}

std::string device_text(const DevicesFound& found, const std::string& name) {
  const DeviceFacts* device = found.find(name);
  const bool is_named = device != nullptr && !device->model.empty();
  return is_named ? fmt::format("{} ({})", name, device->model) : name;
}

// "desk: cuda:0 (NVIDIA …), cuda:1 (…)", and the devices left out.
std::string settled_text(const Machine& machine, const DevicesFound& found) {
  std::vector<std::string> taken;
  for (const std::string& name : machine.devices) taken.push_back(device_text(found, name));
  std::string text = fmt::format("{}: {}", machine.name, fmt::join(taken, ", "));
  for (const DeviceFacts& device : found.devices) {
    const bool is_taken = std::ranges::count(machine.devices, device.name) > 0;
    if (is_taken || !leaves_processor_free(device.name)) continue;
    text += fmt::format(", without {}{}", device.name,
                        device.fault.cause.empty() ? "" : fmt::format(" ({})", device.fault.cause));
  }
  for (const MissingKind& missing : found.missing) {
    if (missing.is_shown)
      text += fmt::format(", without {} ({})", missing.kind, missing.fault.cause);
  }
  return text;
}

}  // namespace

std::vector<std::string> automatic_devices(const std::vector<std::string>& there,
                                           std::size_t at_least) {
  std::vector<std::string> accelerators = there;
  std::erase_if(accelerators, [](const std::string& name) { return !leaves_processor_free(name); });
  if (accelerators.size() >= std::max<std::size_t>(1, at_least)) return accelerators;
  return std::vector<std::string>(at_least, kProcessor);
}

std::vector<std::string> automatic_devices(const DevicesFound& found, std::size_t at_least) {
  std::vector<std::string> sound;
  for (const DeviceFacts& device : found.devices) {
    if (device.fault.cause.empty()) sound.push_back(device.name);
  }
  return automatic_devices(sound, at_least);
}

void settle_by_profile(Cluster& cluster, const Profile& profile) {
  for (Machine& machine : cluster.machines) {
    if (!has_automatic_devices(machine)) continue;
    std::vector<std::string> known;
    for (const DeviceProfile& device : profile.devices) {
      if (device.machine == machine.name) known.push_back(device.device);
    }
    if (!known.empty()) machine.devices = automatic_devices(known, machine.devices.size());
  }
}

void settle_by_plan(Cluster& cluster, const Plan& plan) {
  for (Machine& machine : cluster.machines) {
    if (!has_automatic_devices(machine)) continue;
    std::vector<std::string> used;
    for (const RankPlan& rank : plan.ranks) {
      if (rank.machine == machine.name) used.push_back(rank.device);
    }
    machine.devices = used.empty() ? std::vector<std::string>{kProcessor} : std::move(used);
  }
}

Cluster with_any_devices(Cluster cluster, int stages) {
  for (Machine& machine : cluster.machines) {
    if (!has_automatic_devices(machine)) continue;
    machine.devices.assign(std::max<std::size_t>(machine.devices.size(), std::max(1, stages)),
                           kProcessor);
  }
  return cluster;
}

Result<void> check_settled(const Cluster& cluster) {
  const auto machine = std::ranges::find_if(cluster.machines, has_automatic_devices);
  if (machine == cluster.machines.end()) return {};
  return Error{ErrorCode::kConfig, fmt::format("the devices of {} are not known", machine->name),
               "its devices are \"auto\" in the cluster file, and no profile is of this machine",
               "add its profile (motley profile --cluster FILE -o PROFILE), or name its devices in "
               "the cluster file"};
}

Result<void> settle_by_queries(Cluster& cluster,
                               const std::filesystem::path& program,
                               double start_timeout_s,
                               const Log& log) {
  std::vector<Machine*> asked;
  std::vector<WorkerSpec> workers;
  for (Machine& machine : cluster.machines) {
    if (!has_automatic_devices(machine)) continue;
    asked.push_back(&machine);
    workers.push_back(devices_worker(machine, /*details=*/true, program));
  }
  if (asked.empty()) return {};
  MOTLEY_ASSIGN(const auto found, ask(std::move(workers), start_timeout_s, log));
  std::vector<std::string> words;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    asked[i]->devices = automatic_devices(found[i], asked[i]->devices.size());
    words.push_back(settled_text(*asked[i], found[i]));
  }
  log.info(fmt::format("devices found: {}", fmt::join(words, "; ")));
  return {};
}

Result<DevicesFound> find_devices_of(const Machine& machine,
                                     bool details,
                                     const std::filesystem::path& program,
                                     double start_timeout_s,
                                     const Log& log) {
  MOTLEY_ASSIGN(auto found, ask({devices_worker(machine, details, program)}, start_timeout_s, log));
  return std::move(found.front());
}

}  // namespace motley
