#include "cluster/diagnose/measure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/clock.h"
#include "cluster/diagnose/automatic_devices.h"
#include "cluster/diagnose/computed_devices.h"
#include "cluster/diagnose/precision_check.h"
#include "cluster/diagnose/profile_follower.h"
#include "cluster/diagnose/shared_computer.h"
#include "cluster/launch/transport_choice.h"
#include "cluster/launch/worker_group.h"
#include "cluster/launch/workers.h"
#include "models/spec/layer_memory.h"
#include "plan/cluster/virtual_numbers.h"
#include "plan/units.h"

namespace motley {
namespace {

WorkerSpec profile_worker(const Cluster& cluster,
                          const Machine& machine,
                          const std::string& device,
                          const Config& config,
                          const MeasureOptions& options,
                          const std::filesystem::path& program) {
  WorkerSpec worker{fmt::format("profile of {} ({})", machine.name, device),
                    machine,
                    stage_program_on(machine, program),
                    {}};
  worker.job.verb = "profile";
  worker.job.config = with_absolute_paths(config);
  worker.job.device = device;
  worker.job.threads = machine.threads > 0 ? machine.threads : config.run.threads;
  worker.job.cpu_share = machine.cpu_share;
  const CoreSharers sharers = core_sharers(cluster, machine);
  worker.job.options = Json{{"machine", machine.name},    {"computing", sharers.computing},
                            {"serving", sharers.serving}, {"sizes", sizes_to_measure(config.train)},
                            {"measure", options.anew},    {"all_codecs", options.all_codecs}};
  if (!capabilities_of(device).is_measured) {
    const VirtualNumbers numbers = virtual_numbers(machine, config.train.precision);
    worker.job.virtual_speed = numbers.speed;
    worker.job.options["product_bytes"] = product_bytes(numbers);
    worker.job.options["rounds_intermediates"] = numbers.rounds_intermediates;
    worker.job.options["memory_bytes"] =
        static_cast<std::int64_t>(machine.memory_gib * kBytesPerGib);
  }
  return worker;
}

// The profiling workers of a cluster, and the devices without one.
struct Profilers {
  std::vector<WorkerSpec> workers;
  std::vector<ComputedDevice> computed;
};

// The worker of a device that is not measured either and is started as the machine's would be.
std::optional<std::size_t> worker_alike(const std::vector<WorkerSpec>& workers,
                                        const Machine& machine) {
  const auto found = std::ranges::find_if(workers, [&](const WorkerSpec& worker) {
    return !capabilities_of(worker.job.device).is_measured &&
           are_started_alike(worker.machine, machine);
  });
  if (found == workers.end()) return std::nullopt;
  return static_cast<std::size_t>(found - workers.begin());
}

Result<Profilers> profilers(const Cluster& cluster,
                            const Config& config,
                            const std::filesystem::path& program,
                            const Profile& known,
                            const MeasureOptions& options) {
  Profilers all;
  std::optional<ModelSpec> model;
  for (const Machine& machine : cluster.machines) {
    for (const std::string& device : machine.devices) {
      if (known.find(machine.name, device) != nullptr) continue;
      const auto alike =
          capabilities_of(device).is_measured ? std::nullopt : worker_alike(all.workers, machine);
      if (!alike) {
        all.workers.push_back(profile_worker(cluster, machine, device, config, options, program));
        continue;
      }
      if (!model) {
        MOTLEY_ASSIGN(model, describe_model(config.model));
      }
      all.computed.push_back(
          {computed_part(machine, device, *model, config.train, sizes_to_measure(config.train)),
           *alike});
    }
  }
  return all;
}

// Simulated machines are ignored: the transport between the real ones decides.
std::set<std::string> joined_machines(const Cluster& cluster) {
  std::set<std::string> names = machine_names(cluster);
  if (!is_mixed(cluster)) return names;
  for (const Machine& machine : cluster.machines) {
    if (!capabilities_of(machine).computes) names.erase(machine.name);
  }
  return names;
}

// Messages cost differently by transport. A worker measures on its own machine, with the transport
// between machines if there are several. If a transport is refused, the launch reports it, if the
// plan uses those machines at all.
Result<void> apply_likely_transport(const Cluster& cluster,
                                    const CommConfig& comm,
                                    std::vector<WorkerSpec>& workers) {
  auto choice = choose_transport(cluster, joined_machines(cluster), comm);
  if (!choice.ok()) return {};
  for (WorkerSpec& worker : workers) {
    worker.job.options["shares_memory"] = choice->shares_memory();
  }
  choice->local_shortcut = choice->local_shortcut && choice->is_local;
  return apply_transport(*choice, workers);
}

// The dtypes of the cluster's devices, as far as their machines answer.
std::vector<DeviceDtype> dtypes_here(const Cluster& cluster,
                                     const Config& config,
                                     const std::filesystem::path& program,
                                     const Log& log) {
  std::vector<DeviceDtype> here;
  for (const Machine& machine : cluster.machines) {
    const auto found =
        find_devices_of(machine, /*details=*/true, program, config.comm.start_timeout_s, log);
    const std::set<std::string> devices(machine.devices.begin(), machine.devices.end());
    for (const std::string& device : devices) {
      const DeviceFacts* const facts = found.ok() ? found->find(device) : nullptr;
      here.push_back({fmt::format("{} ({})", machine.name, device),
                      facts == nullptr ? std::vector<std::string>() : facts->types});
    }
  }
  return here;
}

}  // namespace

void warn_of(const Profile& profile, const Log& log) {
  std::vector<std::string> names;
  for (const DeviceProfile& device : profile.devices) {
    if (!device.warnings.empty()) names.push_back(device.machine + " " + device.device);
  }
  if (names.empty()) return;
  log.info(fmt::format(
      "the times of {} varied during profiling; end other programs there for a better plan",
      fmt::join(names, ", ")));
  for (const std::string& warning : warnings_of(profile)) log.debug(warning);
}

std::vector<int> sizes_to_measure(const TrainConfig& train) {
  if (train.micro_batch > 0) return {train.micro_batch};
  constexpr int kSizesMax = 5;      // the worker omits large ones if its time is short
  constexpr int kLargestSize = 32;  // beyond it time grows linearly, and pipelines idle
  std::vector<int> sizes;
  for (int size = 1; size <= std::min(train.global_batch, kLargestSize); ++size) {
    if (train.global_batch % size == 0) sizes.push_back(size);
  }
  // Removes sizes from the middle, so that both ends remain.
  while (static_cast<int>(sizes.size()) > kSizesMax) {
    sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2));
  }
  return sizes;
}

std::int64_t least_memory_bytes(const ModelSpec& model, int moments_per_parameter) {
  const int layers = static_cast<int>(model.layers.size());
  return persistent_memory(model, 0, layers, moments_per_parameter).bytes();
}

Result<Profile> measure_cluster(const Cluster& cluster,
                                const Config& config,
                                const std::filesystem::path& program,
                                const Profile& known,
                                const MeasureOptions& options,
                                const Log& log) {
  MOTLEY_ASSIGN(Profilers all, profilers(cluster, config, program, known, options));
  std::vector<WorkerSpec>& workers = all.workers;
  if (workers.empty()) return known;
  for (WorkerSpec& worker : workers) worker.job.options["company"] = workers.size() > 1;
  MOTLEY_TRY(apply_likely_transport(cluster, config.comm, workers));
  const double start_s = now_s();
  ProfileFollower follower(cluster, workers, std::move(all.computed), config.train.precision, known,
                           options, log);
  WorkerGroup group(std::move(workers),
                    {.start_timeout_s = config.comm.start_timeout_s,
                     .patience_s = config.comm.patience_s,
                     .before_log = [&follower] { follower.clear_line(); }},
                    log);
  const auto ran =
      group.run([&](int worker, const Json& event) { return follower.on_event(worker, event); });
  if (follower.has_refused_precision()) {
    return unsupported_dtype(config.train.precision, dtypes_here(cluster, config, program, log));
  }
  MOTLEY_TRY(ran);
  return follower.finish(now_s() - start_s);
}

}  // namespace motley
