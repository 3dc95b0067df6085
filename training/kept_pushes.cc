#include "training/kept_pushes.h"

namespace motley {
namespace {

Result<void> give_back(const CheckpointReader& reader,
                       KeptBy whose,
                       const Schedule& training,
                       StageState& state,
                       Executor& executor) {
  for (const auto& [owed, what] :
       {std::pair(Owed::kUnsent, Kept::kResidual), std::pair(Owed::kVelocity, Kept::kVelocity)}) {
    // Before the first step the gradient arrays are free and serve as buffers.
    MOTLEY_TRY(state.load_pushes(reader, owed, whose));
    MOTLEY_TRY(executor.set_kept(what, whose, training));
    state.clear_gradients();
  }
  return {};
}

}  // namespace

Result<void> restore_pushes(const CheckpointReader& reader,
                            const TrainConfig& train,
                            const ModelSpec& model,
                            const Plan& plan,
                            const Schedule& training,
                            StageState& state,
                            Executor& executor) {
  const Manifest& manifest = *reader.manifest();
  if (residual_names(manifest, Owed::kVelocity).empty()) return {};
  if (state.has_pushes()) {
    const auto whose =
        manifest.state.plan_hash == plan_hash_text(plan) ? KeptBy::kSelf : KeptBy::kAll;
    state.clear_gradients();
    MOTLEY_TRY(give_back(reader, whose, training, state, executor));
    MOTLEY_TRY(state.load_residuals(reader));
  }
  const double tokens =
      static_cast<double>(train.global_batch) * static_cast<double>(model.tokens_per_sample);
  return state.end_pushes(reader, static_cast<float>(train.momentum), tokens);
}

}  // namespace motley
