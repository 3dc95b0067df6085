#include "partitioner/cost/cost_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/check.h"
#include "base/wire_sizes.h"
#include "compression/codec/codec.h"
#include "compression/codec_chain.h"
#include "plan/units.h"

namespace motley {
namespace {

constexpr std::int64_t kFloatBytes = 4;
// Of a sum over ranks, the frames under way in each direction
// (pipeline/execute/hierarchical_sum.h).
constexpr std::int64_t kSumWindowBytes = 12 << 18;

// What was measured with where nothing else is asked for.
int threads_of(const Machine& machine, const DeviceProfile& measured, int default_threads) {
  if (machine.threads > 0) return machine.threads;
  return default_threads > 0 ? default_threads : std::max(1, measured.threads);
}

// The limit that a person set counts; else what was free when the machine was measured. Both are
// for the whole machine, so its processes share them equally; one with memory of its own is shared
// by those that compute on it.
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
                                  int moments_per_parameter,
                                  const std::string& gradient_codec) {
  CostModel cost(model);
  cost.gradient_codec_ = gradient_codec;
  cost.moments_per_parameter_ = moments_per_parameter;

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
                             memory_limit(machine, *measured), measured->alone_factor,
                             measured->numbers});
    }
  }
  for (const DeviceSlot& from : cost.slots_) {
    for (const DeviceSlot& to : cost.slots_) {
      cost.links_.push_back(cluster.link(from.machine, to.machine));
    }
  }
  cost.find_networks(cluster.machines.size());
  cost.find_fixed_sizes();
  MOTLEY_TRY(cost.check_codec(gradient_codec));
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
         slots_[a].alone_factor == slots_[b].alone_factor &&
         codecs_beside(slot) == codecs_beside(other) && slot_costs_[a] == slot_costs_[b];
}

void CostModel::find_networks(std::size_t machines) {
  networks_.resize(machines);
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

// A name that is no codec's is refused by whoever runs the plan; what it measured stands.
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
    return missing_profile(fmt::format("the profile of {}/{} lacks codec '{}'", slots_[s].machine,
                                       slots_[s].device, codec));
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
                 "it was measured by a version that did not tell them apart",
                 "run `motley profile` there again, or use another schedule than split"};
  }
  return {};
}

LayerSample CostModel::layer(int slot, int layer, int micro_batch) const {
  const std::size_t kind = kinds_[static_cast<std::size_t>(layer)];
  return interpolate(slot_costs_[static_cast<std::size_t>(slot)].samples[kind], micro_batch);
}

double CostModel::forward_s(int slot, int first, int last, int micro_batch) const {
  double sum_s = 0;
  for (int l = first; l < last; ++l) sum_s += layer(slot, l, micro_batch).forward_s;
  return sum_s;
}

double CostModel::backward_s(int slot, int first, int last, int micro_batch, bool recompute) const {
  double sum_s = 0;
  for (int l = first; l < last; ++l) {
    const LayerSample sample = layer(slot, l, micro_batch);
    sum_s += sample.backward_s + (recompute ? sample.forward_s : 0);
  }
  return sum_s;
}

double CostModel::backward_input_s(
    int slot, int first, int last, int micro_batch, bool recompute) const {
  double sum_s = 0;
  for (int l = first; l < last; ++l) {
    const LayerSample sample = layer(slot, l, micro_batch);
    sum_s += sample.backward_input_s() + (recompute ? sample.forward_s : 0);
  }
  return sum_s;
}

double CostModel::backward_weight_s(int slot, int first, int last, int micro_batch) const {
  double sum_s = 0;
  for (int l = first; l < last; ++l) sum_s += layer(slot, l, micro_batch).backward_weight_s();
  return sum_s;
}

double CostModel::optimizer_s(int slot, int first, int last) const {
  return slot_costs_[static_cast<std::size_t>(slot)].optimizer_s_per_parameter *
         static_cast<double>(sizes_.updated_parameters(first, last));
}

const CodecSample& CostModel::codec(int slot, const std::string& name) const {
  const auto& codecs = slot_costs_[static_cast<std::size_t>(slot)].codecs;
  const auto found = codecs.find(name);
  MOTLEY_CHECK(found != codecs.end(), "codec '{}' was not measured", name);
  return found->second;
}

double CostModel::encode_s(int slot, double floats, const std::string& codec_name) const {
  return floats * codec(slot, codec_name).encode_s_per_float;
}

double CostModel::decode_s(int slot, double floats, const std::string& codec_name) const {
  return floats * codec(slot, codec_name).decode_s_per_float;
}

double CostModel::message_s(int slot) const {
  return slot_costs_[static_cast<std::size_t>(slot)].message_s;
}

bool CostModel::codecs_beside(int slot) const {
  return leaves_processor_free(slots_[static_cast<std::size_t>(slot)].device);
}

double CostModel::crossing_s(int slot, double floats, const std::string& codec) const {
  if (codecs_beside(slot)) return 0;
  return encode_s(slot, floats, codec) + decode_s(slot, floats, codec) + 2 * message_s(slot);
}

double CostModel::beside_s(int from_slot,
                           int to_slot,
                           double floats,
                           const std::string& codec) const {
  double seconds = 0;
  if (codecs_beside(from_slot))
    seconds += message_s(from_slot) + encode_s(from_slot, floats, codec);
  if (codecs_beside(to_slot)) seconds += message_s(to_slot) + decode_s(to_slot, floats, codec);
  return seconds;
}

double CostModel::payload_bytes(int slot, double floats, const std::string& codec_name) const {
  const auto fixed = fixed_sizes_.find(codec_name);
  if (fixed != fixed_sizes_.end()) {
    return static_cast<double>(fixed->second->bytes_max(static_cast<std::size_t>(floats)));
  }
  return std::ceil(floats * codec(slot, codec_name).bytes_per_float);
}

double CostModel::frame_bytes(int slot, double floats, const std::string& codec_name) const {
  return static_cast<double>(kFrameHeaderBytes) + payload_bytes(slot, floats, codec_name);
}

double CostModel::boundary_floats(int layer, int micro_batch) const {
  return static_cast<double>(sizes_.boundary_floats(layer, micro_batch));
}

double CostModel::transfer_s(int from_slot, int to_slot, double bytes) const {
  const LinkSpeed& speed = link(from_slot, to_slot);
  return speed.latency_s + bytes / speed.bandwidth_bytes_per_s;
}

double CostModel::machine_bandwidth(int slot) const {
  double fastest = 0;
  for (int other = 0; other < static_cast<int>(slots_.size()); ++other) {
    if (machine_of(other) == machine_of(slot)) continue;
    fastest = std::max(fastest, std::min(link(slot, other).bandwidth_bytes_per_s,
                                         link(other, slot).bandwidth_bytes_per_s));
  }
  return fastest;
}

// Buckets overlap, so that the phases inside machines and those between them each keep their links
// busy to the end; only what comes first and last stands alone, and is short.
double CostModel::sum_s(std::span<const int> slots, std::int64_t parameters) const {
  if (slots.size() < 2) return 0;
  const auto floats = static_cast<double>(parameters);
  std::size_t machines = 0;
  double inside_s = 0;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const auto shares = [&](int slot) { return machine_of(slot) == machine_of(slots[i]); };
    if (std::none_of(slots.begin(), slots.begin() + static_cast<std::ptrdiff_t>(i), shares)) {
      ++machines;
    }
    const auto others = static_cast<double>(std::count_if(slots.begin(), slots.end(), shares) - 1);
    // In each of two phases every rank of the machine has a slice for each other one.
    if (others > 0) {
      inside_s =
          std::max(inside_s, 2 * transfer_s(slots[i], slots[i], others * floats * kFloatBytes));
    }
  }
  if (machines < 2) return inside_s;
  // Two machines exchange everything at once; more of them do so in two phases, each part by part.
  const double phases = machines == 2 ? 1 : 2;
  const auto count = static_cast<double>(machines);
  const double share = machines == 2 ? 1 : (count - 1) / count;
  double phase_s = 0;
  for (const int from : slots) {
    const double bytes = share * floats * gradient_bytes_per_float_[static_cast<std::size_t>(from)];
    for (const int to : slots) {
      if (machine_of(from) != machine_of(to)) {
        phase_s = std::max(phase_s, transfer_s(from, to, bytes));
      }
    }
  }
  return inside_s + phases * phase_s;
}

CostModel CostModel::without_tied() const {
  CostModel cost = *this;
  cost.sizes_.untie();
  return cost;
}

CostModel::MemoryParts CostModel::fixed_memory(int slot,
                                               int first,
                                               int last,
                                               int micro_batch) const {
  const SlotCost& costs = slot_costs_[static_cast<std::size_t>(slot)];
  MemoryParts parts;
  parts.baseline_bytes = costs.baseline_bytes;
  parts.fixed_bytes =
      sizes_.updated_parameters(first, last) *
      ((2 + moments_per_parameter_) * kFloatBytes + costs.rounded_bytes_per_parameter);
  const std::int64_t tied_bytes = sizes_.tied_parameters() * kFloatBytes;
  const int tied_uses = sizes_.tied_uses(first, last);
  if (tied_uses == 1) {
    // The frames of the sum over the ranks that hold a use, those that go and those that come.
    parts.fixed_bytes += 2 * std::min(tied_bytes, kSumWindowBytes);
  } else if (tied_uses == 2) {
    // The second use has values and gradients of its own.
    parts.fixed_bytes +=
        2 * tied_bytes + sizes_.tied_parameters() * costs.rounded_bytes_per_parameter;
  }
  const double floats = (first == 0 ? 0 : boundary_floats(first - 1, micro_batch)) +
                        boundary_floats(last - 1, micro_batch);
  parts.boundary_bytes = static_cast<std::int64_t>(floats) * kFloatBytes;
  return parts;
}

CostModel::MemoryParts CostModel::memory_parts(int slot,
                                               int first,
                                               int last,
                                               int micro_batch) const {
  MemoryParts parts = fixed_memory(slot, first, last, micro_batch);
  for (int l = first; l < last; ++l) {
    const LayerSample sample = layer(slot, l, micro_batch);
    parts.saved_bytes += sample.saved_bytes;
    if (sample.split) parts.queued_bytes += sample.split->queued_bytes;
    parts.workspace_bytes = std::max(parts.workspace_bytes, sample.workspace_bytes);
  }
  return parts;
}

std::int64_t CostModel::memory_bytes(int slot,
                                     int first,
                                     int last,
                                     int micro_batch,
                                     int in_flight,
                                     bool recompute,
                                     int queued_weights) const {
  return memory_parts(slot, first, last, micro_batch).total(in_flight, recompute, queued_weights);
}

}  // namespace motley
