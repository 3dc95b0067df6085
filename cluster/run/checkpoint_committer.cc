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
    : run_dir_(std::move(run_dir)), config_(config), package_(model.package) {
  header_.launch = std::move(launch);
  header_.config = config_to_json(config_);
  header_.elsewhere = {std::move(elsewhere),
                       static_cast<std::uint64_t>(model.parameter_count()) * sizeof(float)};
  for (const RankPlan& rank : plan.ranks) header_.machines.push_back(rank.machine);
  CheckpointState& common = header_.common;
  common.seed = config.train.seed;
  common.model_hash = model.hash();
  common.model_family = model.family;
  common.plan_hash = plan_hash_text(plan);
  common.optimizer = config.train.optimizer;
  common.plan = plan_fingerprint(plan);
}

Result<void> CheckpointCommitter::set_data(DataFingerprint data) {
  header_.common.data = std::move(data);
  MOTLEY_ASSIGN(const SaveHeader whole, header());
  return write_save_header(run_dir_, whole);
}

Result<std::optional<SaveOutcome>> CheckpointCommitter::add_shard(int rank, const Json& event) {
  MOTLEY_ASSIGN(ShardReport report, read_shard_event(event));
  const std::int64_t step = report.state.step;
  Open& open = open_[step];
  if (!open.progress) open.progress = report.state;
  if (!has_same_progress(*open.progress, report.state)) {
    return Error{
        ErrorCode::kInternal,
        fmt::format("rank {} saved step {} in a different state from its peers", rank, step), "",
        ""};
  }
  open.shards[rank] = std::move(report.shard);
  return end_when_complete(step);
}

Result<std::optional<SaveOutcome>> CheckpointCommitter::add_failure(int rank, const Json& event) {
  MOTLEY_ASSIGN(ShardFailure failure, read_shard_failed_event(event));
  open_[failure.step].failures[rank] = std::move(failure.error);
  return end_when_complete(failure.step);
}

std::optional<SaveOutcome> CheckpointCommitter::end_when_complete(std::int64_t step) {
  Open& open = open_[step];
  const std::size_t rank_count = header_.machines.size();
  if (open.shards.size() + open.failures.size() < rank_count) return {};
  SaveOutcome outcome{.step = step};
  if (!open.failures.empty()) {
    const auto& [rank, error] = *open.failures.begin();
    outcome.failure = error;
    if (open.failures.size() == 1 && rank_count > 1) outcome.failed_rank = rank;
  } else if (auto committed = commit(open); committed.ok()) {
    outcome.folder = std::move(committed).value();
  } else {
    outcome.failure = std::move(committed).error();
  }
  open_.erase(step);
  if (outcome.failure) {
    // All ranks have reported, so none of them writes there any more.
    (void)discard_partial({run_dir_, header_.launch, step});
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
  return prune_to(run_dir_, retained_steps(checkpoints, rule), header_.launch);
}

Result<SaveHeader> CheckpointCommitter::header() const {
  SaveHeader whole = header_;
  whole.model_config = huggingface_config(config_.model);
  if (package_) {
    MOTLEY_ASSIGN(whole.model_config, checkpoint_config(*package_));
  }
  return whole;
}

Result<std::filesystem::path> CheckpointCommitter::commit(const Open& open) const {
  MOTLEY_ASSIGN(const SaveHeader whole, header());
  return commit_save(run_dir_, whole, *open.progress, open.shards);
}

}  // namespace motley
