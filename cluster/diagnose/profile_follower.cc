#include "cluster/diagnose/profile_follower.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/clock.h"
#include "base/json.h"
#include "base/process/status_line.h"
#include "cluster/diagnose/memory_check.h"
#include "cluster/launch/event_fields.h"
#include "plan/cluster.h"
#include "plan/cluster/virtual_numbers.h"
#include "plan/units.h"

namespace motley {
namespace {

double total_forward_s(const DeviceProfile& device) {
  double allreduce_s = 0;
  for (const auto& [signature, samples] : device.layers) allreduce_s += samples.back().forward_s;
  return allreduce_s;
}

// Adds a profile; of several for one kind of device the slower one remains.
void merge(Profile& profile, DeviceProfile measured) {
  for (DeviceProfile& known : profile.devices) {
    if (known.machine != measured.machine || known.device != measured.device) continue;
    if (total_forward_s(measured) > total_forward_s(known)) known = std::move(measured);
    return;
  }
  profile.devices.push_back(std::move(measured));
}

}  // namespace

ProfileFollower::ProfileFollower(const Cluster& cluster,
                                 const std::vector<WorkerSpec>& workers,
                                 std::vector<ComputedDevice> computed,
                                 const std::string& precision,
                                 const Profile& known,
                                 const MeasureOptions& options,
                                 const Log& log)
    : cluster_(cluster),
      computed_(std::move(computed)),
      profile_(known),
      options_(options),
      log_(log) {
  for (const WorkerSpec& worker : workers) {
    names_.push_back(worker.name);
    machines_.push_back(worker.machine.name);
    own_memory_.push_back(has_own_memory(worker.job.device));
    virtual_workers_ += capabilities_of(worker.job.device).is_measured ? 0 : 1;
    devices_.push_back(fmt::format("{} ({})", worker.machine.name, worker.job.device));
  }
  memory_.resize(workers.size());
  const bool are_all = known.devices.empty();
  precision_.emplace(precision, devices_, are_all && !options.any_precision);
  const bool live = !options.quiet && is_live_terminal(stderr, std::getenv("TERM"));
  progress_.emplace(
      devices_, [&log](const std::string& line) { log.info(line); }, live ? stderr : nullptr);
}

Result<void> ProfileFollower::on_event(int worker, const Json& event) {
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
    MOTLEY_ASSIGN(const Profile one,
                  profile_from_json(event.value("profile", Json::object()), "a worker's profile"));
    for (DeviceProfile device : one.devices) {
      // From the precision event, which precedes the measurement; the worker's profile does not
      // contain it. A device that computes nothing has the dtype of its cluster file.
      device.compute_dtype =
          capabilities_of(device.device).computes
              ? precision_->compute_dtype_of(index)
              : virtual_numbers(*cluster_.find(machines_[index]), device.precision).compute_dtype;
      add_profile(index, std::move(device));
    }
    reused_ += event.value("kept", false) ? 1 : 0;
    progress_->done(index, now_s());
  }
  return {};
}

void ProfileFollower::add_profile(std::size_t worker, DeviceProfile measured) {
  for (const ComputedDevice& alike : computed_) {
    if (alike.worker == worker) merge(profile_, with_measured_part(alike.profile, measured));
  }
  merge(profile_, std::move(measured));
}

Result<Profile> ProfileFollower::finish(double took_s) {
  progress_->clear();
  for (const Machine& machine : cluster_.machines) {
    for (const std::string& device : machine.devices) {
      if (profile_.find(machine.name, device) != nullptr) continue;
      return Error{ErrorCode::kInternal,
                   fmt::format("machine {} did not send the profile of {}", machine.name, device),
                   "", ""};
    }
  }
  // In the order of the cluster file instead of the order of completion.
  std::ranges::stable_sort(profile_.devices, {}, [&](const DeviceProfile& device) {
    return std::ranges::find(cluster_.machines, device.machine, &Machine::name) -
           cluster_.machines.begin();
  });
  log_.info(summary(took_s));
  share_memory();
  return std::move(profile_);
}

Result<void> ProfileFollower::check_memory() const {
  const bool all_reported =
      std::ranges::all_of(memory_, [](const auto& each) { return each && each->free_bytes > 0; });
  if (!all_reported) return {};
  const std::vector<FoundMachine> found = machines_found();
  const std::vector<double> fair_bytes = memory_per_machine(found);
  std::vector<MachineMemory> all;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (fair_bytes[i] == 0) continue;  // its devices have their own memory
    all.push_back({found[i].name, fair_bytes[i], found[i].free_bytes,
                   /*is_granted=*/found[i].granted_bytes > 0,
                   capabilities_of(cluster_.machines[i]).is_measured});
  }
  for (std::size_t i = 0; i < memory_.size(); ++i) {
    if (!own_memory_[i]) continue;
    all.push_back({devices_[i], memory_[i]->free_bytes, memory_[i]->free_bytes});
  }
  auto problem = memory_problem(all, static_cast<double>(options_.least_bytes));
  if (problem) return *std::move(problem);
  return {};
}

std::vector<FoundMachine> ProfileFollower::machines_found() const {
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
    found.granted_bytes = machine.memory_gib * kBytesPerGib;
    if (!capabilities_of(machine).is_measured) found.free_bytes = found.granted_bytes;
  }
  return all;
}

void ProfileFollower::share_memory() {
  const std::vector<FoundMachine> found = machines_found();
  for (const SharedComputer& computer : shared_computers(found)) {
    const std::string text = shared_memory_text(computer, found);
    computer.is_overcommitted() ? log_.warn(text) : log_.info(text);
  }
  const std::vector<double> fair_bytes = memory_per_machine(found);
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i].granted_bytes > 0) continue;
    for (DeviceProfile& device : profile_.devices) {
      if (device.machine != found[i].name || has_own_memory(device.device)) continue;
      device.memory_bytes = static_cast<std::int64_t>(fair_bytes[i]);
    }
  }
}

std::string ProfileFollower::summary(double took_s) const {
  const std::size_t measured = names_.size() - virtual_workers_ - reused_;
  const std::size_t computed = virtual_workers_ + computed_.size();
  std::vector<std::string> parts;
  if (measured > 0) {
    parts.push_back(fmt::format("measured {} device{}", measured, measured == 1 ? "" : "s"));
  }
  if (reused_ > 0) {
    parts.push_back(fmt::format("reused {} cached profile{} that still hold{}", reused_,
                                reused_ == 1 ? "" : "s", reused_ == 1 ? "s" : ""));
  }
  if (computed > 0) {
    parts.push_back(
        fmt::format("computed {} virtual device{}", computed, computed == 1 ? "" : "s"));
  }
  return fmt::format("{} ({:.0f} s)", fmt::join(parts, ", "), took_s);
}

}  // namespace motley
