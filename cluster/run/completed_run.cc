#include "cluster/run/completed_run.h"

#include "checkpoint/checkpoint.h"
#include "run_config/config_io.h"

namespace motley {

std::optional<std::int64_t> completed_step(const std::filesystem::path& run_dir,
                                           const Config& config) {
  const auto checkpoints = list_checkpoints(run_dir);
  if (checkpoints.empty()) return std::nullopt;
  const Result<Manifest> manifest = read_manifest(checkpoints.back().folder);
  if (!manifest.ok()) return std::nullopt;
  const CheckpointState& state = manifest->state;
  std::int64_t steps = config.train.steps;
  if (config.train.epochs > 0) {
    // The steps were counted from the data when the run began.
    const auto before =
        saved_config_from_json(manifest->config, checkpoints.back().folder.string());
    if (!before.ok() || before->train.epochs != config.train.epochs) return std::nullopt;
    steps = before->train.steps;
  }
  const bool has_stopped =
      state.evaluations && stops_early(*state.evaluations, config.train.early_stopping);
  return state.step >= steps || has_stopped ? std::optional(state.step) : std::nullopt;
}

}  // namespace motley
