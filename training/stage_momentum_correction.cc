// The part of StageState that saves and restores the state of all-reduces between steps.
#include <algorithm>
#include <functional>

#include "training/stage_state.h"

namespace motley {

Result<bool> StageState::add_saved_residual(
    const CheckpointReader& reader,
    const std::map<std::string, std::vector<std::string>>& names,
    const ParameterSpec& spec,
    std::vector<float>& sum) {
  sum.assign(static_cast<std::size_t>(spec.count()), 0);
  const auto found = names.find(spec.name);
  if (found == names.end()) return false;
  std::vector<float> residual(sum.size());
  for (const std::string& name : found->second) {
    MOTLEY_TRY(reader.read(name, spec.shape, residual));
    std::ranges::transform(sum, residual, sum.begin(), std::plus<>{});
  }
  return true;
}

Result<void> StageState::load_correction_state(const CheckpointReader& reader,
                                               ResidualKind residual_kind,
                                               FeedbackScope scope) {
  const auto names = residual_names(*reader.manifest(), residual_kind);
  std::vector<float> sum;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    if (!entry.corrected || entry.owner) continue;
    const std::string own = residual_name(entry.member, entry.spec.name, residual_kind);
    if (scope == FeedbackScope::kAll) {
      MOTLEY_ASSIGN([[maybe_unused]] const bool any,
                    add_saved_residual(reader, names, entry.spec, sum));
      std::ranges::copy(sum, memory_->reduced_gradient(i).begin());
    } else if (reader.has(own)) {
      MOTLEY_TRY(reader.read(own, entry.spec.shape, memory_->reduced_gradient(i)));
    }
  }
  return {};
}

// A velocity u contributes momentum u, momentum² u and so on, like the optimizer's momentum. An
// unsent value must take effect once; the optimizer multiplies an addition to a gradient by 1/(1 -
// momentum) over the following steps.
Result<void> StageState::end_momentum_correction(const CheckpointReader& reader,
                                                 float momentum,
                                                 double tokens) {
  const auto unsent = residual_names(*reader.manifest(), ResidualKind::kUnsent);
  const auto velocities = residual_names(*reader.manifest(), ResidualKind::kVelocity);
  std::vector<float> sum;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    if (entry.corrected || entry.moments.empty()) continue;
    MOTLEY_ASSIGN(const bool moves, add_saved_residual(reader, velocities, entry.spec, sum));
    if (moves) {
      const StateArray moment = moment_of(i, 0);
      const std::span<const float> had = memory_->view(moment);
      for (std::size_t k = 0; k < sum.size(); ++k) {
        sum[k] = had[k] + static_cast<float>(sum[k] / tokens);
      }
      MOTLEY_TRY(memory_->fill(moment, [&](std::span<float> values) -> Result<void> {
        std::ranges::copy(sum, values.begin());
        return {};
      }));
    }
    if (entry.spec.tied_use || !entry.is_first) continue;
    MOTLEY_ASSIGN(const bool waits, add_saved_residual(reader, unsent, entry.spec, sum));
    for (float& value : sum) value *= 1 - momentum;
    if (waits) memory_->add_to_gradient(i, sum);
  }
  return {};
}

std::vector<TensorView> StageState::residual_views() {
  return gradient_views(has_corrected_ ? ResidualKind::kUnsent : ResidualKind::kResidual,
                        has_corrected_);
}

std::vector<TensorView> StageState::velocity_views() {
  return gradient_views(ResidualKind::kVelocity, /*corrected=*/true);
}

std::vector<TensorView> StageState::gradient_views(ResidualKind residual_kind, bool corrected) {
  std::vector<TensorView> views;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    if (entry.owner || entry.corrected != corrected) continue;
    views.push_back({residual_name(entry.member, entry.spec.name, residual_kind), entry.spec.shape,
                     memory_->view({StateArray::Kind::kGradients, i})});
  }
  return views;
}

}  // namespace motley
