#include "cluster/prepare/resume_checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "cluster/run/data_fingerprint.h"
#include "run_config/config_changes.h"
#include "training/optimizer/rate_change.h"

namespace motley {
namespace {

// The keys that data.changed = "accept" covers.
bool is_of_the_data(const ConfigChange& change) {
  return change.key == "train.seed" || change.key.starts_with("data.");
}

bool is_of_the_schedule(const ConfigChange& change) {
  static constexpr std::array<std::string_view, 5> kKeys = {
      "train.steps", "train.schedule", "train.schedule_steps", "train.decay_steps", "train.min_lr"};
  return std::ranges::find(kKeys, change.key) != kKeys.end();
}

}  // namespace

Result<void> check_resume(const CheckpointState& saved,
                          const std::filesystem::path& folder,
                          const Config& config,
                          const ModelSpec& model) {
  // --allow-changes cannot permit these: the checkpoint cannot be resumed.
  if (saved.model_hash != model.hash()) {
    return Error{ErrorCode::kConfig,
                 fmt::format("the checkpoint {} is of another model", folder.string()),
                 "its layers or sizes differ from those of [model] in the configuration",
                 "use the configuration of that run (config.toml in its folder), or another --run"};
  }
  if (saved.optimizer == kNoOptimizer) {
    return Error{
        ErrorCode::kConfig, fmt::format("the checkpoint {} cannot be resumed", folder.string()),
        "it is a mean of others, without optimizer state",
        fmt::format("use it as the initial weights of another run: --set model.init_from={}",
                    folder.string())};
  }
  if (saved.optimizer != config.train.optimizer) {
    return Error{ErrorCode::kConfig,
                 fmt::format("the checkpoint {} has the state of optimizer {}", folder.string(),
                             saved.optimizer),
                 fmt::format("the configuration asks for {}", config.train.optimizer),
                 fmt::format("set train.optimizer = \"{}\"", saved.optimizer)};
  }
  if (saved.step >= config.train.steps) {
    return Error{
        ErrorCode::kConfig,
        fmt::format("the run has already done {} of {} steps", saved.step, config.train.steps), "",
        longer_run_remedy(config.train, saved.step)};
  }
  return {};
}

Config with_choices_of(const Config& before, Config config) {
  const int micro_batch = before.train.micro_batch;
  if (config.train.micro_batch == 0 && micro_batch > 0 &&
      config.train.global_batch % micro_batch == 0) {
    config.train.micro_batch = micro_batch;
  }
  if (config.run.threads == 0) config.run.threads = before.run.threads;
  return config;
}

Result<void> check_not_stopped_early(const EvaluationRecord& record,
                                     std::int64_t step,
                                     const TrainConfig& train) {
  if (!stops_early(record, train.early_stopping)) return {};
  return Error{
      ErrorCode::kConfig, fmt::format("the run has stopped early, after step {}", step),
      fmt::format("{} (train.early_stopping = {}){}", early_stop_text(record), train.early_stopping,
                  record.best ? "; best: " + best_text(*record.best) : ""),
      "to train further: --resume --set train.early_stopping=0, or a larger number"};
}

bool has_same_evaluations(const Config& before, const Config& config) {
  const auto samples = [](const TrainConfig& train) {
    return static_cast<std::int64_t>(train.eval_batches) * train.global_batch;
  };
  const TrainConfig& a = before.train;
  const TrainConfig& b = config.train;
  return samples(a) == samples(b) && a.label_smoothing == b.label_smoothing &&
         a.class_weights == b.class_weights && before.data.holdout == config.data.holdout &&
         before.data.holdout_path == config.data.holdout_path &&
         before.data.mean == config.data.mean && before.data.std == config.data.std;
}

std::vector<std::string> changes_of(const Config& before, const Config& config, bool same_rates) {
  std::vector<ConfigChange> changes = result_changes(before, config);
  if (same_rates) std::erase_if(changes, is_of_the_schedule);
  if (config.data.changed == "accept") std::erase_if(changes, is_of_the_data);
  // The micro-batch was left open and the run's own is no longer possible: another reported change
  // causes this one.
  std::erase_if(changes, [&](const ConfigChange& change) {
    return change.key == "train.micro_batch" && config.train.micro_batch == 0;
  });
  std::vector<std::string> words;
  for (const ConfigChange& change : changes) {
    words.push_back(fmt::format("{} {} -> {}", change.key, change.from, change.to));
  }
  return words;
}

Result<void> refuse_changes(const std::vector<std::string>& changes, const std::string& hint) {
  if (changes.empty()) return {};
  return Error{
      ErrorCode::kConfig,
      fmt::format("the run was started with other settings: {}", fmt::join(changes, ", ")),
      "its results would differ from those of an uninterrupted run",
      fmt::format("resume with the configuration of the run (config.toml in its folder), {}{}",
                  kAllowChangesRemedy, hint.empty() ? "" : "\n" + hint)};
}

Cluster with_threads_of(const Plan& plan, Cluster cluster) {
  for (Machine& machine : cluster.machines) {
    const auto rank = std::ranges::find(plan.ranks, machine.name, &RankPlan::machine);
    if (machine.threads == 0 && rank != plan.ranks.end()) machine.threads = rank->threads;
  }
  return cluster;
}

}  // namespace motley
