#include "partitioner/cost_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace motley {
namespace {

constexpr std::int64_t kFloatBytes = 4;
constexpr std::int64_t kTokenBytes = 8;  // token ids travel as int64

// The limit that a person set counts; else what was free when the machine was measured. Both are
// for the whole machine, so its processes share them equally.
std::int64_t memory_limit(const Machine& machine, const DeviceProfile& profile) {
  constexpr double kGib = 1024.0 * 1024.0 * 1024.0;
  const auto processes = static_cast<std::int64_t>(machine.devices.size());
  const std::int64_t total = machine.memory_gib > 0
                                 ? static_cast<std::int64_t>(std::floor(machine.memory_gib * kGib))
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
                                  int moments_per_parameter) {
  CostModel cost;
  cost.tokens_per_sample_ = model.tokens_per_sample;
  cost.moments_per_parameter_ = moments_per_parameter;

  std::map<std::string, std::size_t> kinds;
  for (const LayerSpec& layer : model.layers) {
    LayerCost& layer_cost = cost.layers_.emplace_back();
    layer_cost.kind = kinds.try_emplace(layer.signature, kinds.size()).first->second;
    layer_cost.output_floats = layer.output_floats_per_sample;
    for (const ParameterSpec& parameter : layer.parameters) {
      if (!parameter.tied_use) layer_cost.stored_parameters += parameter.count();
    }
  }
  if (const auto pair = model.tied_pair()) {
    const auto& uses = model.layers[static_cast<std::size_t>(pair->user_layer)].parameters;
    const auto use = std::find_if(uses.begin(), uses.end(), [&](const ParameterSpec& p) {
      return p.name == pair->parameter;
    });
    const std::int64_t count = use == uses.end() ? 0 : use->count();
    cost.tied_ = Tied{pair->owner_layer, pair->user_layer, count, count * kFloatBytes};
  }

  for (const Machine& machine : cluster.machines) {
    for (const std::string& device : machine.devices) {
      const std::string name = fmt::format("{}/{}", machine.name, device);
      const DeviceProfile* measured = profile.find(machine.name, device);
      if (measured == nullptr) return missing_profile(fmt::format("no profile of {}", name));
      SlotCost slot_cost{measured->baseline_bytes, measured->optimizer_s_per_parameter, {}};
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
      cost.slots_.push_back({machine.name, device,
                             machine.threads > 0 ? machine.threads : default_threads,
                             memory_limit(machine, *measured)});
    }
  }
  for (const DeviceSlot& from : cost.slots_) {
    for (const DeviceSlot& to : cost.slots_) {
      cost.links_.push_back(cluster.link(from.machine, to.machine));
    }
  }
  return cost;
}

LayerSample CostModel::layer(int slot, int layer, int micro_batch) const {
  const std::size_t kind = layers_[static_cast<std::size_t>(layer)].kind;
  return interpolate(slot_costs_[static_cast<std::size_t>(slot)].samples[kind], micro_batch);
}

double CostModel::forward_s(int slot, int first, int last, int micro_batch) const {
  double sum_s = 0;
  for (int l = first; l < last; ++l) sum_s += layer(slot, l, micro_batch).forward_s;
  return sum_s;
}

double CostModel::backward_s(int slot, int first, int last, int micro_batch) const {
  double sum_s = 0;
  for (int l = first; l < last; ++l) sum_s += layer(slot, l, micro_batch).backward_s;
  return sum_s;
}

double CostModel::optimizer_s(int slot, int first, int last) const {
  return slot_costs_[static_cast<std::size_t>(slot)].optimizer_s_per_parameter *
         static_cast<double>(updated_parameters(first, last));
}

LinkSpeed CostModel::link(int from_slot, int to_slot) const {
  return links_[static_cast<std::size_t>(from_slot) * slots_.size() +
                static_cast<std::size_t>(to_slot)];
}

double CostModel::message_s(int from_slot, int to_slot, double bytes) const {
  const LinkSpeed speed = link(from_slot, to_slot);
  return speed.latency_s + bytes / speed.bandwidth_bytes_per_s;
}

double CostModel::transfer_s(
    int from_slot, int to_slot, int layer, int micro_batch, double bytes_per_float) const {
  const std::int64_t bytes = boundary_bytes(layer, micro_batch, bytes_per_float);
  return message_s(from_slot, to_slot, static_cast<double>(bytes));
}

std::int64_t CostModel::boundary_bytes(int layer, int micro_batch, double bytes_per_float) const {
  const std::int64_t floats = layers_[static_cast<std::size_t>(layer)].output_floats;
  return static_cast<std::int64_t>(
      std::ceil(static_cast<double>(floats * micro_batch) * bytes_per_float));
}

std::int64_t CostModel::target_bytes(int micro_batch) const {
  return tokens_per_sample_ * micro_batch * kTokenBytes;
}

bool CostModel::holds(int first, int last, int layer) {
  return first <= layer && layer < last;
}

std::int64_t CostModel::updated_parameters(int first, int last) const {
  std::int64_t parameters = 0;
  for (int l = first; l < last; ++l) {
    parameters += layers_[static_cast<std::size_t>(l)].stored_parameters;
  }
  // A rank that has only the use keeps and updates a copy.
  if (tied_ && holds(first, last, tied_->user_layer) && !holds(first, last, tied_->owner_layer)) {
    parameters += tied_->parameters;
  }
  return parameters;
}

std::int64_t CostModel::memory_bytes(
    int slot, int first, int last, int micro_batch, int in_flight) const {
  std::int64_t saved_bytes = 0;
  std::int64_t workspace_bytes = 0;
  for (int l = first; l < last; ++l) {
    const LayerSample sample = layer(slot, l, micro_batch);
    saved_bytes += sample.saved_bytes;
    workspace_bytes = std::max(workspace_bytes, sample.workspace_bytes);
  }
  std::int64_t parameter_bytes =
      updated_parameters(first, last) * (2 + moments_per_parameter_) * kFloatBytes;
  // The other use's gradient: of the second use here, or as it comes from the other rank.
  if (tied_ && (holds(first, last, tied_->user_layer) || holds(first, last, tied_->owner_layer))) {
    parameter_bytes += tied_->bytes;
  }
  const std::int64_t in_bytes =
      first == 0 ? 0 : boundary_bytes(first - 1, micro_batch, kFloatBytes);
  const std::int64_t out_bytes = boundary_bytes(last - 1, micro_batch, kFloatBytes);
  return slot_costs_[static_cast<std::size_t>(slot)].baseline_bytes + parameter_bytes +
         in_flight * saved_bytes + (in_flight + 2) * (in_bytes + out_bytes) + workspace_bytes;
}

}  // namespace motley
