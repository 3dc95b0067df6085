#include "training/correction_state.h"

namespace motley {
namespace {

Result<void> give_back(const CheckpointReader& reader,
                       FeedbackScope scope,
                       const Schedule& training,
                       StageState& state,
                       Executor& executor) {
  for (const auto& [residual_kind, what] :
       {std::pair(ResidualKind::kUnsent, FeedbackKind::kResidual),
        std::pair(ResidualKind::kVelocity, FeedbackKind::kVelocity)}) {
    // Before the first step the gradient arrays are free and serve as buffers.
    MOTLEY_TRY(state.load_correction_state(reader, residual_kind, scope));
    MOTLEY_TRY(executor.set_feedback(what, scope, training));
    state.clear_gradients();
  }
  return {};
}

}  // namespace

Result<void> restore_correction_state(const CheckpointReader& reader,
                                      const TrainConfig& train,
                                      const ModelSpec& model,
                                      const Plan& plan,
                                      const Schedule& training,
                                      StageState& state,
                                      Executor& executor) {
  const Manifest& manifest = *reader.manifest();
  if (residual_names(manifest, ResidualKind::kVelocity).empty()) return {};
  if (state.has_corrected()) {
    const auto scope = manifest.state.plan_hash == plan_hash_text(plan) ? FeedbackScope::kSelf
                                                                        : FeedbackScope::kAll;
    state.clear_gradients();
    MOTLEY_TRY(give_back(reader, scope, training, state, executor));
    MOTLEY_TRY(state.load_residuals(reader));
  }
  const double tokens =
      static_cast<double>(train.global_batch) * static_cast<double>(model.tokens_per_sample);
  return state.end_momentum_correction(reader, static_cast<float>(train.momentum), tokens);
}

}  // namespace motley
