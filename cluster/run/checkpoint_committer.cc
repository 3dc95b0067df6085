#include "cluster/run/checkpoint_committer.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "cluster/planning/plan_rounding.h"
#include "models/spec/hf_config.h"
#include "protocol/shard_message.h"
#include "run_config/config_io.h"
#include "run_config/schedule_length.h"

namespace motley {

RetentionPolicy retention_policy(const Config& config,
                                 const std::vector<CheckpointInfo>& checkpoints) {
  RetentionPolicy rule{.newest = config.checkpoint.keep, .every = config.checkpoint.keep_every};
  if (config.checkpoint.keep_best) {
    if (const auto best = best_checkpoint(checkpoints)) rule.always.insert(best->info.step);
  }
  if (const std::int64_t stable = last_stable_step(config.train)) rule.always.insert(stable);
  return rule;
}

std::set<std::int64_t> retained_with(std::int64_t at,
                                     const std::vector<CheckpointInfo>& checkpoints,
                                     const Config& config) {
  std::vector<CheckpointInfo> up_to;
  std::set<std::int64_t> later;
  for (const CheckpointInfo& each : checkpoints) {
    if (each.step <= at) {
      up_to.push_back(each);
    } else {
      later.insert(each.step);
    }
  }
  RetentionPolicy rule = retention_policy(config, up_to);
  rule.always.insert(at);
  std::set<std::int64_t> kept = retained_steps(up_to, rule);
  kept.merge(later);
  return kept;
}

CheckpointCommitter::CheckpointCommitter(std::filesystem::path run_dir,
                                         std::string launch,
                                         const Config& config,
                                         const ModelSpec& model,
                                         const Plan& plan,
                                         std::set<int> elsewhere)
    : run_dir_(std::move(run_dir)),
      launch_(std::move(launch)),
      config_(config),
      package_(model.package),
      rank_count_(plan.rank_count()),
      elsewhere_{std::move(elsewhere),
                 static_cast<std::uint64_t>(model.parameter_count()) * sizeof(float)} {
  for (const RankPlan& rank : plan.ranks) machines_.push_back(rank.machine);
  common_.seed = config.train.seed;
  common_.model_hash = model.hash();
  common_.model_family = model.family;
  common_.plan_hash = plan_hash_text(plan);
  common_.optimizer = config.train.optimizer;
  common_.plan = plan_fingerprint(plan);
}

Result<std::optional<SaveOutcome>> CheckpointCommitter::add_shard(int rank, const Json& event) {
  MOTLEY_ASSIGN(ShardMessage message, read_shard_event(event));
  CheckpointState state = common_;
  state.step = message.state.step;
  state.samples = message.state.samples;
  state.tokens = message.state.tokens;
  state.optimizer_updates = message.state.optimizer_updates;
  state.gradient_scale = message.state.gradient_scale;
  state.evaluations = message.state.evaluations;
  state.round_tokens = message.state.round_tokens;
  Open& open = open_[state.step];
  if (!open.state) open.state = state;
  if (open.state->samples != state.samples || open.state->tokens != state.tokens ||
      open.state->optimizer_updates != state.optimizer_updates ||
      open.state->gradient_scale != state.gradient_scale ||
      open.state->evaluations != state.evaluations ||
      open.state->round_tokens != state.round_tokens) {
    return Error{
        ErrorCode::kInternal,
        fmt::format("rank {} saved step {} in a different state from its peers", rank, state.step),
        "", ""};
  }
  open.shards[rank] = std::move(message.shard);
  return end_when_complete(state.step);
}

Result<std::optional<SaveOutcome>> CheckpointCommitter::add_failure(int rank, const Json& event) {
  MOTLEY_ASSIGN(ShardFailure failure, read_shard_failed_event(event));
  open_[failure.step].failures[rank] = std::move(failure.error);
  return end_when_complete(failure.step);
}

std::optional<SaveOutcome> CheckpointCommitter::end_when_complete(std::int64_t step) {
  Open& open = open_[step];
  if (static_cast<int>(open.shards.size() + open.failures.size()) < rank_count_) return {};
  SaveOutcome outcome{.step = step};
  if (!open.failures.empty()) {
    const auto& [rank, error] = *open.failures.begin();
    outcome.failure = error;
    if (open.failures.size() == 1 && rank_count_ > 1) outcome.failed_rank = rank;
  } else if (auto committed = commit(open); committed.ok()) {
    outcome.folder = std::move(committed).value();
  } else {
    outcome.failure = std::move(committed).error();
  }
  open_.erase(step);
  if (outcome.failure) {
    // All ranks have reported, so none of them writes there any more.
    (void)discard_partial({run_dir_, launch_, step});
    return outcome;
  }
  newest_ = step;
  if (auto pruned = prune(); !pruned.ok()) outcome.stale = std::move(pruned).error();
  return outcome;
}

Result<void> CheckpointCommitter::prune() const {
  if (!newest_) return {};
  // Later ones are of a run that lost a machine and repeated these steps.
  std::vector<CheckpointInfo> checkpoints = list_checkpoints(run_dir_);
  std::erase_if(checkpoints, [&](const CheckpointInfo& each) { return each.step > *newest_; });
  RetentionPolicy rule = retention_policy(config_, checkpoints);
  rule.always.insert(always_retained_.begin(), always_retained_.end());
  return prune_to(run_dir_, retained_steps(checkpoints, rule), launch_);
}

Result<std::filesystem::path> CheckpointCommitter::commit(Open& open) const {
  std::vector<Shard> shards;
  for (auto& [rank, shard] : open.shards) {
    // If all ranks write to one folder, the manifest need not name their machines.
    if (!elsewhere_.ranks.empty()) {
      shard.model.machine = machines_[static_cast<std::size_t>(rank)];
      shard.optimizer.machine = shard.model.machine;
    }
    shards.push_back(std::move(shard));
  }
  Json model_config = huggingface_config(config_.model);
  if (package_) {
    MOTLEY_ASSIGN(model_config, checkpoint_config(*package_));
  }
  return commit_checkpoint(run_dir_, launch_, *open.state, shards, config_to_json(config_),
                           model_config, elsewhere_);
}

}  // namespace motley
