#include "cluster/examine/measure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cluster/launch/transport_choice.h"
#include "cluster/launch/worker_group.h"
#include "cluster/launch/workers.h"

namespace motley {
namespace {

constexpr double kGib = 1024.0 * 1024.0 * 1024.0;

double total_forward_s(const DeviceProfile& device) {
  double sum_s = 0;
  for (const auto& [signature, samples] : device.layers) sum_s += samples.back().forward_s;
  return sum_s;
}

// Keeps the slower of two measurements of one kind of device.
void merge(Profile& profile, DeviceProfile measured) {
  for (DeviceProfile& known : profile.devices) {
    if (known.machine != measured.machine || known.device != measured.device) continue;
    if (total_forward_s(measured) > total_forward_s(known)) known = std::move(measured);
    return;
  }
  profile.devices.push_back(std::move(measured));
}

WorkerSpec profile_worker(const Machine& machine,
                          const std::string& device,
                          const Config& config,
                          const std::filesystem::path& program) {
  WorkerSpec worker{fmt::format("profile of {} ({})", machine.name, device),
                    machine,
                    stage_program_on(machine, program),
                    {}};
  worker.job.verb = "profile";
  worker.job.config = with_absolute_paths(config);
  worker.job.device = device;
  worker.job.threads = machine.threads > 0 ? machine.threads : config.run.threads;
  worker.job.virtual_speed = machine.virtual_speed;
  worker.job.options = Json{{"machine", machine.name}, {"sizes", sizes_to_measure(config.train)}};
  if (machine.virtual_speed) {
    worker.job.options["memory_bytes"] = static_cast<std::int64_t>(machine.memory_gib * kGib);
  }
  return worker;
}

// Imagined machines join nothing: what goes between the real ones decides.
std::set<std::string> joined_machines(const Cluster& cluster) {
  std::set<std::string> names = machine_names(cluster);
  if (!is_mixed(cluster)) return names;
  for (const Machine& machine : cluster.machines) {
    if (machine.virtual_speed) names.erase(machine.name);
  }
  return names;
}

// What sending costs depends on the transport. A worker measures on its own machine, and it is to
// measure what goes between machines if anything does. Where a transport is refused the launch will
// say so, if the plan uses those machines at all.
Result<void> apply_likely_transport(const Cluster& cluster,
                                    const CommConfig& comm,
                                    std::vector<WorkerSpec>& workers) {
  auto choice = choose_transport(cluster, joined_machines(cluster), comm);
  if (!choice.ok()) return {};
  choice->local_shortcut = choice->local_shortcut && choice->is_local;
  return apply_transport(*choice, workers);
}

}  // namespace

void warn_of(const Profile& profile, const Log& log) {
  std::vector<std::string> names;
  for (const DeviceProfile& device : profile.devices) {
    if (!device.warnings.empty()) names.push_back(device.machine + " " + device.device);
  }
  if (names.empty()) return;
  log.info(
      fmt::format("the times of {} varied while they were measured; the plan is better where "
                  "nothing else runs",
                  fmt::join(names, ", ")));
  for (const std::string& warning : warnings_of(profile)) log.debug(warning);
}

std::vector<int> sizes_to_measure(const TrainConfig& train) {
  if (train.micro_batch > 0) return {train.micro_batch};
  constexpr int kSizesMax = 4;      // each costs a fraction of a second per kind of layer
  constexpr int kLargestSize = 32;  // beyond it time grows in proportion, and pipelines starve
  std::vector<int> sizes;
  for (int size = 1; size <= std::min(train.global_batch, kLargestSize); ++size) {
    if (train.global_batch % size == 0) sizes.push_back(size);
  }
  // Keeps the ends and spreads the rest evenly.
  while (static_cast<int>(sizes.size()) > kSizesMax) {
    sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2));
  }
  return sizes;
}

Result<Profile> measure_cluster(const Cluster& cluster,
                                const Config& config,
                                const std::filesystem::path& program,
                                const Profile& known,
                                const Log& log) {
  Profile profile = known;
  std::vector<WorkerSpec> workers;
  for (const Machine& machine : cluster.machines) {
    for (const std::string& device : machine.devices) {
      if (known.find(machine.name, device) != nullptr) continue;
      workers.push_back(profile_worker(machine, device, config, program));
    }
  }
  if (workers.empty()) return profile;
  MOTLEY_TRY(apply_likely_transport(cluster, config.comm, workers));
  const auto on_event = [&](int, const Json& event) -> Result<void> {
    if (event.value("event", "") != "result") return {};
    MOTLEY_ASSIGN(const Profile one,
                  profile_from_json(event.value("profile", Json::object()), "a worker's profile"));
    for (const DeviceProfile& device : one.devices) merge(profile, device);
    return {};
  };
  WorkerGroup group(std::move(workers), {.start_timeout_s = config.comm.start_timeout_s}, log);
  MOTLEY_TRY(group.run(on_event));
  for (const Machine& machine : cluster.machines) {
    for (const std::string& device : machine.devices) {
      if (profile.find(machine.name, device) != nullptr) continue;
      return Error{ErrorCode::kInternal,
                   fmt::format("machine {} sent no profile of {}", machine.name, device), "", ""};
    }
  }
  return profile;
}

}  // namespace motley
