// Initial values of a stage's state, and its tensors in checkpoints.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "checkpoint/not_finite.h"
#include "models/spec/initialize.h"
#include "training/stage_state.h"

namespace motley {
namespace {

std::string average_name(const std::string& parameter) {
  return "ema/" + parameter;
}

std::string moment_name(const std::string& moment, const std::string& parameter) {
  return moment + "/" + parameter;
}

// Of an island whose copy is not the one that is saved for all.
std::string island_moment_name(const std::string& moment,
                               int island,
                               const std::string& parameter) {
  return fmt::format("{}.island.{}/{}", moment, island, parameter);
}

// Otherwise damaged weights would show only as skipped steps.
Result<void> require_numbers(std::span<const float> values, const std::string& name) {
  const std::size_t lost = count_not_finite(values);
  if (lost == 0) return {};
  return Error{ErrorCode::kData, fmt::format("unusable initial weights, tensor {}", name),
               fmt::format("{} of its {} values are not finite", lost, values.size()),
               "use weights from before this damage"};
}

}  // namespace

std::uint64_t StageState::value_bytes() const {
  std::uint64_t bytes = 0;
  for (const Entry& entry : entries_) bytes += entry.bytes();
  return bytes;
}

std::uint64_t StageState::saved_bytes() const {
  std::uint64_t bytes = 0;
  for (const Entry& entry : entries_) {
    bytes += entry.bytes() * (1 + entry.moments.size() + (entry.averaged ? 1 : 0));
  }
  return bytes;
}

Result<void> StageState::initialize(std::int64_t seed, ProgressCounter& work) {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    MOTLEY_TRY(memory_->fill(values_of(i), [&](std::span<float> values) -> Result<void> {
      initialize_parameter(entries_[i].spec, seed, values);
      return {};
    }));
    work.add_bytes(entries_[i].bytes());
  }
  return begin_averages();
}

Result<void> StageState::load_values(const CheckpointReader& reader) {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const ParameterSpec& spec = entries_[i].spec;
    MOTLEY_TRY(memory_->fill(values_of(i), [&](std::span<float> values) -> Result<void> {
      const Result<void> read = reader.read(spec.name, spec.shape, values);
      return read.ok() ? require_numbers(values, spec.name) : read;
    }));
  }
  return begin_averages();
}

Result<void> StageState::begin_averages() {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (!entries_[i].averaged) continue;
    const std::span<const float> values = memory_->view(values_of(i));
    MOTLEY_TRY(memory_->fill(average_of(i), [&](std::span<float> average) -> Result<void> {
      std::ranges::copy(values, average.begin());
      return {};
    }));
  }
  return {};
}

Result<void> StageState::load_moments(const CheckpointReader& reader) {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const ParameterSpec& spec = entries_[i].spec;
    const std::vector<std::string>& moments = entries_[i].moments;
    for (std::size_t k = 0; k < moments.size(); ++k) {
      const std::string name = moment_name(moments[k], spec.name);
      const std::string of_island = island_moment_name(moments[k], entries_[i].island, spec.name);
      MOTLEY_TRY(memory_->fill(moment_of(i, k), [&](std::span<float> moment) {
        return reader.read(reader.has(of_island) ? of_island : name, spec.shape, moment);
      }));
    }
    const std::string average = average_name(spec.name);
    if (!entries_[i].averaged || !reader.has(average)) continue;
    MOTLEY_TRY(memory_->fill(average_of(i), [&](std::span<float> values) {
      return reader.read(average, spec.shape, values);
    }));
  }
  return {};
}

Result<void> StageState::load_residuals(const CheckpointReader& reader) {
  const auto names = residual_names(*reader.manifest());
  std::vector<float> residual;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    if (entry.spec.tied_use || !entry.is_first) continue;
    const auto found = names.find(entry.spec.name);
    if (found == names.end()) continue;
    residual.resize(static_cast<std::size_t>(entry.spec.count()));
    for (const std::string& name : found->second) {
      MOTLEY_TRY(reader.read(name, entry.spec.shape, residual));
      memory_->add_to_gradient(i, residual);
    }
  }
  return {};
}

std::vector<TensorView> StageState::parameter_views() {
  std::vector<TensorView> views;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    if (entry.spec.tied_use || !entry.is_first) continue;
    views.push_back({entry.spec.name, entry.spec.shape, memory_->view(values_of(i))});
  }
  return views;
}

std::vector<TensorView> StageState::moment_views() {
  std::vector<TensorView> views;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    if (entry.spec.tied_use || !(entry.is_first || entry.is_counted)) continue;
    for (std::size_t k = 0; k < entry.moments.size(); ++k) {
      const std::string& moment = entry.moments[k];
      const std::string name = entry.is_first
                                   ? moment_name(moment, entry.spec.name)
                                   : island_moment_name(moment, entry.island, entry.spec.name);
      views.push_back({name, entry.spec.shape, memory_->view(moment_of(i, k))});
    }
    if (entry.averaged) {
      views.push_back(
          {average_name(entry.spec.name), entry.spec.shape, memory_->view(average_of(i))});
    }
  }
  return views;
}

}  // namespace motley
