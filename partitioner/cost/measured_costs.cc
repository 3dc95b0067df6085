// Construction of a CostModel from the profiles of the cluster's devices, and checks that they
// cover the plan's options.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "compression/codec/codec.h"
#include "compression/make_codec.h"
#include "partitioner/cost/cost_model.h"
#include "plan/units.h"

namespace motley {
namespace {

// The number of the measurement unless configured otherwise.
int threads_of(const Machine& machine, const DeviceProfile& measured, int default_threads) {
  if (machine.threads > 0) return machine.threads;
  return default_threads > 0 ? default_threads : std::max(1, measured.threads);
}

// The user's limit, else the memory that was free when the machine was measured. Both are for the
// whole machine, so its processes share them equally; a device's own memory is shared by the
// processes that compute on it.
std::int64_t memory_limit(const Machine& machine, const DeviceProfile& profile) {
  if (has_own_memory(profile.device)) {
    return profile.memory_bytes / std::ranges::count(machine.devices, profile.device);
  }
  const auto own = std::ranges::count_if(machine.devices, has_own_memory);
  const auto processes = static_cast<std::int64_t>(machine.devices.size()) - own;
  const std::int64_t total =
      machine.memory_gib > 0
          ? static_cast<std::int64_t>(std::floor(machine.memory_gib * kBytesPerGib))
          : profile.memory_bytes;
  return total / processes;
}

Error missing_profile(const std::string& what) {
  return {ErrorCode::kConfig, what, "it was not measured with this model",
          "run `motley profile` there and pass its file with --profile"};
}

}  // namespace

Result<CostModel> CostModel::make(const ModelSpec& model,
                                  const Cluster& cluster,
                                  const Profile& profile,
                                  int default_threads,
                                  const ResidentState& process_state,
                                  const std::string& gradient_codec) {
  CostModel cost(model);
  cost.gradient_codec_ = gradient_codec;
  cost.moments_per_parameter_ = process_state.moments_per_parameter;
  cost.data_bytes_ = process_state.data_bytes;

  std::map<std::string, std::size_t> kinds;
  for (const LayerSpec& layer : model.layers) {
    cost.kinds_.push_back(kinds.try_emplace(layer.signature, kinds.size()).first->second);
  }

  for (std::size_t machine_number = 0; machine_number < cluster.machines.size(); ++machine_number) {
    const Machine& machine = cluster.machines[machine_number];
    for (const std::string& device : machine.devices) {
      const std::string name = fmt::format("{}/{}", machine.name, device);
      const DeviceProfile* measured = profile.find(machine.name, device);
      if (measured == nullptr) return missing_profile(fmt::format("no profile of {}", name));
      SlotCost slot_cost{measured->baseline_bytes,
                         measured->rounded_bytes_per_parameter,
                         measured->optimizer_s_per_parameter,
                         measured->message_s,
                         measured->shared_s_per_float,
                         measured->codecs,
                         {}};
      slot_cost.codecs.try_emplace("none");
      slot_cost.samples.resize(kinds.size());
      for (const auto& [signature, kind] : kinds) {
        const auto samples = measured->layers.find(signature);
        if (samples == measured->layers.end() || samples->second.empty()) {
          return missing_profile(
              fmt::format("the profile of {} lacks layer '{}'", name, signature));
        }
        slot_cost.samples[kind] = samples->second;
      }
      cost.slot_costs_.push_back(std::move(slot_cost));
      cost.machines_.push_back(machine_number);
      cost.slots_.push_back({machine.name, device, threads_of(machine, *measured, default_threads),
                             memory_limit(machine, *measured), measured->single_device_factor,
                             measured->compute_dtype});
    }
  }
  for (const DeviceSlot& from : cost.slots_) {
    for (const DeviceSlot& to : cost.slots_) {
      cost.links_.push_back(cluster.link(from.machine, to.machine));
    }
  }
  cost.find_networks(cluster);
  cost.find_fixed_sizes();
  MOTLEY_TRY(cost.check_codec(gradient_codec));
  cost.feedback_per_encoded_ = feedback_per_encoded(process_state, gradient_codec);
  for (const SlotCost& slot : cost.slot_costs_) {
    cost.gradient_bytes_per_float_.push_back(slot.codecs.at(gradient_codec).bytes_per_float);
  }
  return cost;
}

void CostModel::limit_memory(const std::string& machine, double share) {
  for (DeviceSlot& slot : slots_) {
    if (slot.machine != machine) continue;
    slot.memory_bytes =
        static_cast<std::int64_t>(std::floor(share * static_cast<double>(slot.memory_bytes)));
  }
}

bool CostModel::same_costs(int slot, int other) const {
  const auto a = static_cast<std::size_t>(slot);
  const auto b = static_cast<std::size_t>(other);
  return slots_[a].memory_bytes == slots_[b].memory_bytes &&
         slots_[a].single_device_factor == slots_[b].single_device_factor &&
         overlaps_codecs(slot) == overlaps_codecs(other) && slot_costs_[a] == slot_costs_[b];
}

void CostModel::find_networks(const Cluster& cluster) {
  std::map<std::string, std::size_t> numbers;  // indices of machines
  for (const Machine& machine : cluster.machines) {
    numbers.emplace(machine.name, networks_.size());
    networks_.push_back({0, 0, machine.medium});
  }
  // Links to a machine that is gone also document the speed of a machine's network.
  for (const LinkOverride& link : cluster.links) {
    const double bandwidth = link.speed.bandwidth_bytes_per_s;
    if (const auto from = numbers.find(link.from); from != numbers.end()) {
      double& up = networks_[from->second].up_bytes_per_s;
      up = std::max(up, bandwidth);
    }
    if (const auto to = numbers.find(link.to); to != numbers.end()) {
      double& down = networks_[to->second].down_bytes_per_s;
      down = std::max(down, bandwidth);
    }
  }
  for (int from = 0; from < static_cast<int>(slots_.size()); ++from) {
    for (int to = 0; to < static_cast<int>(slots_.size()); ++to) {
      if (same_machine(from, to)) continue;
      const double bandwidth = link(from, to).bandwidth_bytes_per_s;
      double& up = networks_[machine_of(from)].up_bytes_per_s;
      double& down = networks_[machine_of(to)].down_bytes_per_s;
      up = std::max(up, bandwidth);
      down = std::max(down, bandwidth);
    }
  }
}

// Unknown codec names are rejected when the plan runs; their measured sizes are used here.
void CostModel::find_fixed_sizes() {
  for (const SlotCost& slot : slot_costs_) {
    for (const auto& [name, sample] : slot.codecs) {
      if (fixed_sizes_.contains(name)) continue;
      auto codec = make_codec(name);
      if (codec.ok() && (*codec)->has_fixed_size()) fixed_sizes_[name] = *std::move(codec);
    }
  }
}

Result<void> CostModel::check_codec(const std::string& codec) const {
  for (std::size_t s = 0; s < slots_.size(); ++s) {
    if (slot_costs_[s].codecs.contains(codec)) continue;
    return Error{ErrorCode::kConfig,
                 fmt::format("the profile of {}/{} lacks codec '{}'", slots_[s].machine,
                             slots_[s].device, codec),
                 "it was measured for a configuration that names other codecs",
                 "measure for this one: `motley profile` takes the same CONFIG and --set"};
  }
  return {};
}

Result<void> CostModel::check_split() const {
  for (std::size_t s = 0; s < slots_.size(); ++s) {
    const auto& kinds = slot_costs_[s].samples;
    const bool measured = std::all_of(kinds.begin(), kinds.end(), [](const auto& samples) {
      return std::all_of(samples.begin(), samples.end(),
                         [](const LayerSample& sample) { return sample.split.has_value(); });
    });
    if (measured) continue;
    return Error{ErrorCode::kConfig,
                 fmt::format("the profile of {}/{} lacks the two parts of backward",
                             slots_[s].machine, slots_[s].device),
                 "it was measured by a version without them",
                 "run `motley profile` there again, or use another schedule than split"};
  }
  return {};
}

}  // namespace motley
