#include "training/first_state.h"

#include <fmt/format.h>

#include "models/package/package.h"
#include "models/spec/initial_weights.h"
#include "run_config/evaluation_rules.h"
#include "training/vote/gradient_scaler.h"

namespace motley {
namespace {

Result<CheckpointState> resume(StageState& state,
                               const ModelSpec& model,
                               const std::string& folder,
                               ProgressCounter& work) {
  const ProgressCounter::Task loading(work, "loading parameters and moments", state.saved_bytes());
  MOTLEY_ASSIGN(const CheckpointReader reader, CheckpointReader::open_part(folder, &work));
  const Manifest* manifest = reader.manifest();
  if (manifest == nullptr || manifest->state.model_hash != model.hash()) {
    return Error{ErrorCode::kConfig, fmt::format("{} is not a state of this model", folder), "",
                 "resume with the configuration that the run was started with"};
  }
  MOTLEY_TRY(state.load_values(reader));
  MOTLEY_TRY(state.load_moments(reader));
  MOTLEY_TRY(state.load_residuals(reader));
  return manifest->state;
}

Result<void> check_outline(const CheckpointReader& reader, const ModelConfig& model) {
  MOTLEY_ASSIGN(const WeightsOutline outline, reader.outline());
  return check_weights(model, /*origins=*/{}, outline.tensors, outline.config, outline.source);
}

}  // namespace

// A package contains its own initial values.
std::string initial_weights_of(const ModelSpec& model, const ModelConfig& config) {
  const bool is_own = model.package != nullptr && config.init_from.empty();
  return is_own ? model.package->weights_path().string() : config.init_from;
}

Result<void> check_initial_weights(const ModelConfig& model) {
  if (model.init_from.empty()) return {};
  MOTLEY_ASSIGN(const CheckpointReader reader, CheckpointReader::open(model.init_from));
  return check_outline(reader, model);
}

namespace {

Result<CheckpointState> filled_state(StageState& state,
                                     const Config& config,
                                     const ModelSpec& model,
                                     const std::string& resume_from,
                                     ProgressCounter& work) {
  // A resumed run also reads the package's constants.
  if (model.package != nullptr) {
    const ProgressCounter::Task checking(work, "checking the package",
                                         model.package->weights.bytes);
    MOTLEY_TRY(verify_package(*model.package, &work));
  }
  if (!resume_from.empty()) return resume(state, model, resume_from, work);
  if (const std::string weights = initial_weights_of(model, config.model); !weights.empty()) {
    const ProgressCounter::Task loading(work, "loading parameters", state.value_bytes());
    MOTLEY_ASSIGN(const CheckpointReader reader, CheckpointReader::open(weights, &work));
    if (weights == config.model.init_from) MOTLEY_TRY(check_outline(reader, config.model));
    MOTLEY_TRY(state.load_values(reader));
    return CheckpointState{};
  }
  const ProgressCounter::Task starting(work, "computing initial values", state.value_bytes());
  MOTLEY_TRY(state.initialize(config.train.seed, work));
  return CheckpointState{};
}

}  // namespace

Result<CheckpointState> fill_state(StageState& state,
                                   const Config& config,
                                   const ModelSpec& model,
                                   const std::string& resume_from,
                                   ProgressCounter& work) {
  MOTLEY_ASSIGN(CheckpointState progress, filled_state(state, config, model, resume_from, work));
  progress.gradient_scale =
      gradient_scale_of(config.train, model.tokens_per_sample, progress.gradient_scale);
  // Otherwise the record would lack the evaluations from here on.
  if (!compares_evaluations(config)) progress.evaluations.reset();
  return progress;
}

}  // namespace motley
