#include "training/stage_state.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/hash.h"
#include "models/spec/initialize.h"

namespace motley {
namespace {

std::string residual_name(int rank, const std::string& parameter) {
  return fmt::format("residual.{}/{}", rank, parameter);
}

// Its share of the way to the mean of what the micro-batches observed, whose sum stands in the
// place of the gradient.
void move_statistic(const HeldParameter& statistic, int micro_batches) {
  const auto share = static_cast<float>(*statistic.spec.statistic_momentum);
  const auto count = static_cast<float>(micro_batches);
  std::ranges::transform(
      statistic.values, statistic.gradients, statistic.values.begin(),
      [&](float value, float sum) { return (1 - share) * value + share * (sum / count); });
}

}  // namespace

StageState::StageState(const std::vector<HeldChunk>& held,
                       std::unique_ptr<const Optimizer> optimizer,
                       std::string tied_parameter,
                       int micro_batches)
    : micro_batches_(micro_batches),
      optimizer_(std::move(optimizer)),
      moment_names_(optimizer_->moment_names()),
      tied_parameter_(std::move(tied_parameter)) {
  for (const HeldChunk& chunk : held) {
    summed_gradients_[chunk.chunk] = chunk.summed_gradients;
    voted_layers_.insert(voted_layers_.end(), chunk.voted_layers.begin(), chunk.voted_layers.end());
    for (const HeldParameter& parameter : chunk.parameters) {
      Entry entry{chunk.chunk, parameter, {}, std::nullopt};
      if (parameter.spec.tied_use) {
        for (std::size_t i = 0; i < entries_.size(); ++i) {
          if (entries_[i].held.spec.name == parameter.spec.name) entry.owner = i;
        }
      }
      if (!entry.owner.has_value() && !parameter.spec.statistic_momentum) {
        entry.moments.assign(moment_names_.size(),
                             std::vector<float>(parameter.values.size(), 0.0F));
      }
      entries_.push_back(std::move(entry));
    }
  }
}

std::uint64_t StageState::value_bytes() const {
  std::uint64_t bytes = 0;
  for (const Entry& entry : entries_) bytes += entry.held.values.size_bytes();
  return bytes;
}

std::uint64_t StageState::saved_bytes() const {
  std::uint64_t bytes = 0;
  for (const Entry& entry : entries_) {
    bytes += entry.held.values.size_bytes() * (1 + entry.moments.size());
  }
  return bytes;
}

void StageState::initialize(std::int64_t seed, WorkCounter& work) {
  for (Entry& entry : entries_) {
    initialize_parameter(entry.held.spec, seed, entry.held.values);
    work.add_bytes(entry.held.values.size_bytes());
  }
}

Result<void> StageState::load_values(const CheckpointReader& reader) {
  for (Entry& entry : entries_) {
    MOTLEY_TRY(reader.read(entry.held.spec.name, entry.held.spec.shape, entry.held.values));
  }
  return {};
}

Result<void> StageState::load_moments(const CheckpointReader& reader) {
  for (Entry& entry : entries_) {
    for (std::size_t i = 0; i < entry.moments.size(); ++i) {
      MOTLEY_TRY(reader.read(moment_names_[i] + "/" + entry.held.spec.name, entry.held.spec.shape,
                             entry.moments[i]));
    }
  }
  return {};
}

Result<void> StageState::load_residuals(const CheckpointReader& reader, int rank_count) {
  std::vector<float> residual;
  for (Entry& entry : entries_) {
    if (entry.held.spec.tied_use || !entry.held.is_first) continue;
    residual.resize(entry.held.gradients.size());
    for (int rank = 0; rank < rank_count; ++rank) {
      const std::string name = residual_name(rank, entry.held.spec.name);
      if (!reader.has(name)) continue;
      MOTLEY_TRY(reader.read(name, entry.held.spec.shape, residual));
      std::ranges::transform(entry.held.gradients, residual, entry.held.gradients.begin(),
                             std::plus<>{});
    }
  }
  return {};
}

std::span<float> StageState::gradients(ChunkId chunk) {
  const auto summed = summed_gradients_.find(chunk);
  MOTLEY_CHECK(summed != summed_gradients_.end(), "chunk {} is on another rank", chunk.value);
  return summed->second;
}

const StageState::Entry& StageState::tied_entry() const {
  const auto entry = std::ranges::find_if(entries_, [&](const Entry& each) {
    return each.held.spec.name == tied_parameter_ && !each.owner.has_value();
  });
  MOTLEY_CHECK(entry != entries_.end(), "no use of '{}' is on this rank", tied_parameter_);
  return *entry;
}

std::span<float> StageState::tied_gradient() {
  return tied_entry().held.gradients;
}

void StageState::end_tied_gradient() {
  const auto add = [](std::span<const float> from, std::span<float> to) {
    std::ranges::transform(to, from, to.begin(), std::plus<>{});
  };
  for (Entry& entry : entries_) {
    if (entry.owner) add(entry.held.gradients, entries_[*entry.owner].held.gradients);
  }
}

std::vector<LayerNorm2> StageState::layer_norms() const {
  std::vector<LayerNorm2> norms;
  for (const int layer : voted_layers_) norms.push_back({layer, 0.0});
  auto norm = norms.begin();
  for (const Entry& entry : entries_) {
    if (!entry.held.is_first) continue;
    while (norm != norms.end() && norm->layer != entry.held.layer) ++norm;
    MOTLEY_CHECK(norm != norms.end(), "layer {} is not voted for", entry.held.layer);
    const bool counts = !entry.held.spec.tied_use && !entry.held.spec.statistic_momentum;
    if (counts) norm->squared_norm += squared_norm(entry.held.gradients);
  }
  return norms;
}

std::uint64_t StageState::copy_hash(const CopyGroup& group) const {
  if (!group.chunk) return hash64(std::as_bytes(tied_entry().held.values));
  MOTLEY_CHECK(summed_gradients_.contains(*group.chunk), "chunk {} is on another rank",
               group.chunk->value);
  std::vector<std::uint64_t> hashes;
  for (const Entry& entry : entries_) {
    if (entry.chunk == *group.chunk) hashes.push_back(hash64(std::as_bytes(entry.held.values)));
  }
  return hash64(std::as_bytes(std::span(hashes)));
}

void StageState::update(const StepFactors& factors, float gradient_scale) {
  for (Entry& entry : entries_) {
    if (entry.owner) {
      std::ranges::copy(entries_[*entry.owner].held.values, entry.held.values.begin());
      continue;
    }
    if (entry.held.spec.statistic_momentum) {
      move_statistic(entry.held, micro_batches_);
      continue;
    }
    std::vector<std::span<float>> moments(entry.moments.begin(), entry.moments.end());
    optimizer_->update(entry.held.values, entry.held.gradients, moments,
                       {factors, gradient_scale, entry.held.spec.decayed});
  }
}

void StageState::clear_gradients() {
  for (Entry& entry : entries_) std::ranges::fill(entry.held.gradients, 0.0F);
}

std::vector<TensorView> StageState::parameter_views() const {
  std::vector<TensorView> views;
  for (const Entry& entry : entries_) {
    if (entry.held.spec.tied_use || !entry.held.is_first) continue;
    views.push_back({entry.held.spec.name, entry.held.spec.shape, entry.held.values});
  }
  return views;
}

std::vector<TensorView> StageState::moment_views() const {
  std::vector<TensorView> views;
  for (const Entry& entry : entries_) {
    if (entry.held.spec.tied_use || !entry.held.is_first) continue;
    for (std::size_t i = 0; i < entry.moments.size(); ++i) {
      views.push_back(
          {moment_names_[i] + "/" + entry.held.spec.name, entry.held.spec.shape, entry.moments[i]});
    }
  }
  return views;
}

std::vector<TensorView> StageState::residual_views(int rank) const {
  std::vector<TensorView> views;
  for (const Entry& entry : entries_) {
    if (entry.owner) continue;
    views.push_back(
        {residual_name(rank, entry.held.spec.name), entry.held.spec.shape, entry.held.gradients});
  }
  return views;
}

}  // namespace motley
