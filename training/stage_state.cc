#include "training/stage_state.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/hash.h"

namespace motley {

std::unique_ptr<StateMemory> host_memory(const std::vector<HeldChunk>& held,
                                         std::unique_ptr<const Optimizer> optimizer,
                                         InParts in_parts) {
  std::vector<HostMemory::Parameter> parameters;
  std::map<ChunkId, std::span<float>> summed;
  for (const HeldChunk& chunk : held) {
    summed[chunk.chunk] = chunk.reduced_gradients;
    for (const HeldParameter& parameter : chunk.parameters) {
      parameters.push_back({parameter.values, parameter.gradients, parameter.rule.matrix});
    }
  }
  return std::make_unique<HostMemory>(std::move(parameters), std::move(summed),
                                      std::move(optimizer), std::move(in_parts));
}

StageState::StageState(const std::vector<HeldChunk>& held,
                       std::unique_ptr<const Optimizer> optimizer,
                       std::string tied_parameter,
                       int micro_batches)
    : StageState(
          held, host_memory(held, std::move(optimizer)), std::move(tied_parameter), micro_batches) {
}

StageState::StageState(const std::vector<HeldChunk>& held,
                       std::unique_ptr<StateMemory> memory,
                       std::string tied_parameter,
                       int micro_batches,
                       double ema)
    : micro_batches_(micro_batches),
      ema_(ema),
      memory_(std::move(memory)),
      tied_parameter_(std::move(tied_parameter)) {
  for (const HeldChunk& chunk : held) {
    chunks_.insert(chunk.chunk);
    voted_layers_.insert(voted_layers_.end(), chunk.voted_layers.begin(), chunk.voted_layers.end());
    for (const HeldParameter& parameter : chunk.parameters) {
      Entry entry{chunk.chunk,
                  parameter.layer,
                  parameter.is_first,
                  parameter.is_counted,
                  parameter.island,
                  parameter.member,
                  parameter.members,
                  parameter.corrected,
                  parameter.spec,
                  parameter.rule.lr_factor,
                  parameter.rule.decay_factor.value_or(parameter.spec.decayed ? 1 : 0),
                  {},
                  {}};
      has_corrected_ = has_corrected_ || entry.corrected;
      if (parameter.spec.tied_use) {
        for (std::size_t i = 0; i < entries_.size(); ++i) {
          if (entries_[i].spec.name == parameter.spec.name) entry.owner = i;
        }
      }
      if (!entry.owner.has_value() && !parameter.spec.statistic_momentum) {
        entry.moments = memory_->moment_names(entries_.size());
        memory_->make_moments(entries_.size());
        entry.averaged = ema_ > 0 && entry.is_first && !entry.spec.tied_use;
        if (entry.averaged) memory_->make_average(entries_.size());
      }
      entries_.push_back(std::move(entry));
    }
  }
}

std::span<float> StageState::gradients(ChunkId chunk) {
  return memory_->reduced_gradients(chunk);
}

std::size_t StageState::tied_entry() const {
  const auto entry = std::ranges::find_if(entries_, [&](const Entry& each) {
    return each.spec.name == tied_parameter_ && !each.owner.has_value();
  });
  MOTLEY_CHECK(entry != entries_.end(), "no use of '{}' is on this rank", tied_parameter_);
  return static_cast<std::size_t>(entry - entries_.begin());
}

std::span<float> StageState::tied_gradient() {
  return memory_->staged_gradient(tied_entry());
}

void StageState::end_tied_gradient() {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].owner) memory_->add_gradient(i, *entries_[i].owner);
  }
  if (!tied_parameter_.empty()) memory_->stage_gradient(tied_entry());
}

std::vector<LayerNorm2> StageState::layer_norms() {
  std::vector<LayerNorm2> norms;
  for (const int layer : voted_layers_) norms.push_back({layer, 0.0});
  std::vector<std::size_t> counted;  // entries,
  std::vector<std::size_t> places;   // and the indices of their norms
  std::size_t place = 0;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    if (!entry.is_counted) continue;
    while (place < norms.size() && norms[place].layer != entry.layer) ++place;
    MOTLEY_CHECK(place < norms.size(), "layer {} is not voted for", entry.layer);
    if (entry.spec.tied_use || entry.spec.statistic_momentum) continue;
    counted.push_back(i);
    places.push_back(place);
  }
  const std::vector<double> squared = memory_->squared_norms(counted);
  for (std::size_t k = 0; k < squared.size(); ++k) norms[places[k]].squared_norm += squared[k];
  return norms;
}

std::uint64_t StageState::copy_hash(const CopyGroup& group) {
  if (!group.chunk) return memory_->hash_values(tied_entry());
  std::vector<std::uint64_t> hashes;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].chunk == *group.chunk) hashes.push_back(memory_->hash_values(i));
  }
  MOTLEY_CHECK(chunks_.contains(*group.chunk), "chunk {} is on another rank", group.chunk->value);
  return hash64(std::as_bytes(std::span(hashes)));
}

void StageState::update(const StepFactors& factors, const GradientScales& scales) {
  // Parameters with equal arguments are updated together, so that devices run few operations.
  using Alike = std::tuple<bool, double, double>;  // corrected, decay factor, rate factor
  std::map<Alike, std::vector<std::size_t>> trained;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    if (entry.owner) continue;
    if (entry.spec.statistic_momentum) {
      memory_->move_statistic(i, static_cast<float>(*entry.spec.statistic_momentum),
                              static_cast<float>(micro_batches_));
    } else {
      trained[{entry.corrected, entry.decay_factor, entry.lr_factor}].push_back(i);
    }
  }
  for (const auto& [kind, alike] : trained) {
    const auto [corrected, decay_factor, lr_factor] = kind;
    memory_->update(alike, {{factors.lr * lr_factor, factors.corrections},
                            corrected ? scales.corrected : scales.clipped,
                            decay_factor,
                            corrected});
  }
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].owner) memory_->copy_values(*entries_[i].owner, i);
  }
  std::vector<std::size_t> averaged;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].averaged) averaged.push_back(i);
  }
  if (!averaged.empty()) memory_->average(averaged, ema_);
}

std::vector<StageState::Updated> StageState::updated() const {
  std::vector<Updated> updated;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    if (entry.owner) continue;
    updated.push_back({.number = i,
                       .chunk = entry.chunk,
                       .spec = &entry.spec,
                       .is_tied = entry.spec.name == tied_parameter_,
                       .is_first = entry.is_first && !entry.spec.tied_use,
                       .is_counted = entry.is_counted && !entry.spec.tied_use,
                       .island = entry.island,
                       .member = entry.member,
                       .members = entry.members});
  }
  return updated;
}

std::span<const float> StageState::values(std::size_t number) {
  return memory_->view(values_of(number));
}

void StageState::fill(const StateArray& array, std::span<const float> values) {
  const Result<void> filled = memory_->fill(array, [&](std::span<float> to) -> Result<void> {
    std::ranges::copy(values, to.begin());
    return {};
  });
  MOTLEY_CHECK(filled.ok(), "copying cannot fail");
}

void StageState::set_values(std::size_t number, std::span<const float> values) {
  fill(values_of(number), values);
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].owner == number) memory_->copy_values(number, i);
  }
}

std::span<const float> StageState::moment(std::size_t number, std::size_t moment) {
  return memory_->view(moment_of(number, moment));
}

void StageState::set_moment(std::size_t number, std::size_t moment, std::span<const float> values) {
  fill(moment_of(number, moment), values);
}

void StageState::clear_gradients() {
  memory_->clear_gradients();
}

}  // namespace motley
