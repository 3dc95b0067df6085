#include "cluster/examine/measure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "cluster/examine/measuring_progress.h"
#include "cluster/examine/precision_check.h"
#include "cluster/examine/shared_computer.h"
#include "cluster/launch/event_fields.h"
#include "cluster/launch/transport_choice.h"
#include "cluster/launch/worker_group.h"
#include "cluster/launch/workers.h"
#include "cluster/process/status_line.h"
#include "plan/quantity_text.h"

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
  worker.job.virtual_speed = machine.virtual_speed;
  worker.job.options = Json{{"machine", machine.name},
                            {"processes", sharing_processes(cluster, machine)},
                            {"sizes", sizes_to_measure(config.train)},
                            {"measure", options.anew},
                            {"all_codecs", options.all_codecs}};
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

// What the workers say.
class ProfileFollower {
 public:
  ProfileFollower(const Cluster& cluster,
                  const std::vector<WorkerSpec>& workers,
                  const std::string& precision,
                  const Profile& known,
                  const MeasureOptions& options,
                  const Log& log)
      : cluster_(cluster), profile_(known), options_(options), log_(log) {
    std::vector<std::string> devices;
    for (const WorkerSpec& worker : workers) {
      names_.push_back(worker.name);
      machines_.push_back(worker.machine.name);
      own_memory_.push_back(has_own_memory(worker.job.device));
      devices.push_back(fmt::format("{} ({})", worker.machine.name, worker.job.device));
    }
    memory_.resize(workers.size());
    const bool are_all = known.devices.empty();
    precision_.emplace(precision, devices, are_all && !options.any_precision);
    const bool live = !options.quiet && is_live_terminal(stderr, std::getenv("TERM"));
    progress_.emplace(
        std::move(devices), [&log](const std::string& line) { log.info(line); },
        live ? stderr : nullptr);
  }

  Result<void> on_event(int worker, const Json& event) {
    const auto index = static_cast<std::size_t>(worker);
    const std::string& source = names_[index];
    MOTLEY_ASSIGN(const std::string kind, json_get<std::string>(event, "event", source));
    if (kind == "memory") {
      FoundMachine& found = memory_[index].emplace();
      MOTLEY_ASSIGN(found.free_bytes, event_quantity(event, "bytes", source));
      MOTLEY_ASSIGN(found.computer, json_get<std::string>(event, "computer", source));
      MOTLEY_ASSIGN(found.computer_bytes, event_quantity(event, "computer_bytes", source));
      return check_memory();
    }
    if (kind == "precision") {
      MOTLEY_ASSIGN(const auto line, precision_->add(worker, event));
      if (line) log_.info(*line);
      return {};
    }
    if (kind == "measuring") {
      MOTLEY_ASSIGN(const std::string what, json_get<std::string>(event, "what", source));
      MOTLEY_ASSIGN(const double done, event_quantity(event, "done", source));
      MOTLEY_ASSIGN(const double left_s, event_quantity(event, "left_s", source));
      progress_->show(index, {excerpt(what), done, left_s}, now_s());
    } else if (kind == "result") {
      MOTLEY_ASSIGN(const Profile one, profile_from_json(event.value("profile", Json::object()),
                                                         "a worker's profile"));
      for (const DeviceProfile& device : one.devices) merge(profile_, device);
      kept_ += event.value("kept", false) ? 1 : 0;
      progress_->done(index, now_s());
    }
    return {};
  }

  void clear_line() { progress_->clear(); }

  Result<Profile> finish(double took_s) {
    progress_->clear();
    for (const Machine& machine : cluster_.machines) {
      for (const std::string& device : machine.devices) {
        if (profile_.find(machine.name, device) != nullptr) continue;
        return Error{ErrorCode::kInternal,
                     fmt::format("machine {} sent no profile of {}", machine.name, device), "", ""};
      }
    }
    log_.info(summary(took_s));
    share_memory();
    return std::move(profile_);
  }

 private:
  // Once all have said how much they have.
  [[nodiscard]] Result<void> check_memory() const {
    const bool all_told =
        std::ranges::all_of(memory_, [](const auto& each) { return each && each->free_bytes > 0; });
    if (!all_told) return {};
    double all_bytes = 0;
    for (const double bytes : fair_memory(machines_found())) all_bytes += bytes;
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      if (own_memory_[i]) all_bytes += memory_[i]->free_bytes;
    }
    const auto least_bytes = static_cast<double>(options_.least_bytes);
    if (all_bytes >= least_bytes) return {};
    return Error{
        ErrorCode::kInfeasible,
        fmt::format("the model does not fit: all devices together have {} of memory",
                    bytes_text(all_bytes)),
        fmt::format("its parameters, their gradients and the optimizer's moments alone take {}",
                    bytes_text(least_bytes)),
        "add a machine or memory, or make the model smaller"};
  }

  // Every machine of the cluster, by what its workers say, else by the profile that was known.
  [[nodiscard]] std::vector<FoundMachine> machines_found() const {
    std::vector<FoundMachine> all;
    for (const Machine& machine : cluster_.machines) {
      FoundMachine& found = all.emplace_back();
      for (const DeviceProfile& device : profile_.devices) {
        if (device.machine != machine.name || has_own_memory(device.device)) continue;
        found.free_bytes = static_cast<double>(device.memory_bytes);
      }
      for (std::size_t i = 0; i < memory_.size(); ++i) {
        const bool is_its = machines_[i] == machine.name && !own_memory_[i];
        if (is_its && memory_[i]) found = *memory_[i];
      }
      found.name = machine.name;
      found.granted_bytes = machine.memory_gib * kGib;
    }
    return all;
  }

  // What machines of one computer find free is there once.
  void share_memory() {
    const std::vector<FoundMachine> found = machines_found();
    for (const SharedComputer& computer : shared_computers(found)) {
      const std::string text = shared_memory_text(computer, found);
      computer.is_overdrawn() ? log_.warn(text) : log_.info(text);
    }
    const std::vector<double> fair_bytes = fair_memory(found);
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (found[i].granted_bytes > 0) continue;
      for (DeviceProfile& device : profile_.devices) {
        if (device.machine != found[i].name || has_own_memory(device.device)) continue;
        device.memory_bytes = static_cast<std::int64_t>(fair_bytes[i]);
      }
    }
  }

  [[nodiscard]] std::string summary(double took_s) const {
    const std::size_t measured = names_.size() - kept_;
    std::string words;
    if (measured > 0) {
      words = fmt::format("measured {} device{}", measured, measured == 1 ? "" : "s");
    }
    if (kept_ > 0) {
      words += fmt::format("{}took {} kept profile{} that still hold{}", measured > 0 ? ", " : "",
                           kept_, kept_ == 1 ? "" : "s", kept_ == 1 ? "s" : "");
    }
    return fmt::format("{} ({:.0f} s)", words, took_s);
  }

  const Cluster& cluster_;
  Profile profile_;
  const MeasureOptions& options_;
  const Log& log_;
  std::vector<std::string> names_;                   // by worker
  std::vector<std::string> machines_;                // by worker
  std::vector<bool> own_memory_;                     // by worker: its device's
  std::vector<std::optional<FoundMachine>> memory_;  // by worker: what it finds on its machine
  std::optional<MeasuringProgress> progress_;
  std::optional<PrecisionCheck> precision_;
  std::size_t kept_ = 0;
};

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
  constexpr int kSizesMax = 5;      // the worker leaves out large ones where its time is short
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

std::int64_t least_memory_bytes(std::int64_t parameters, int moments_per_parameter) {
  return parameters * (2 + moments_per_parameter) * static_cast<std::int64_t>(sizeof(float));
}

Result<Profile> measure_cluster(const Cluster& cluster,
                                const Config& config,
                                const std::filesystem::path& program,
                                const Profile& known,
                                const MeasureOptions& options,
                                const Log& log) {
  std::vector<WorkerSpec> workers;
  for (const Machine& machine : cluster.machines) {
    for (const std::string& device : machine.devices) {
      if (known.find(machine.name, device) != nullptr) continue;
      workers.push_back(profile_worker(cluster, machine, device, config, options, program));
    }
  }
  if (workers.empty()) return known;
  for (WorkerSpec& worker : workers) worker.job.options["company"] = workers.size() > 1;
  MOTLEY_TRY(apply_likely_transport(cluster, config.comm, workers));
  const double start_s = now_s();
  ProfileFollower follower(cluster, workers, config.train.precision, known, options, log);
  WorkerGroup group(std::move(workers),
                    {.start_timeout_s = config.comm.start_timeout_s,
                     .before_log = [&follower] { follower.clear_line(); }},
                    log);
  MOTLEY_TRY(
      group.run([&](int worker, const Json& event) { return follower.on_event(worker, event); }));
  return follower.finish(now_s() - start_s);
}

}  // namespace motley
