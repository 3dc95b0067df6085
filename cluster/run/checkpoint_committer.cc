#include "cluster/run/checkpoint_committer.h"

#include <fmt/format.h>

#include "job/config_io.h"
#include "models/spec/hf_config.h"
#include "protocol/shard_message.h"

namespace motley {
CheckpointCommitter::CheckpointCommitter(std::filesystem::path run_dir,
                                         const Config& config,
                                         const ModelSpec& model,
                                         std::uint64_t plan_hash,
                                         int rank_count)
    : run_dir_(std::move(run_dir)), config_(config), rank_count_(rank_count) {
  common_.seed = config.train.seed;
  common_.model_hash = model.hash();
  common_.model_family = model.family;
  common_.plan_hash = fmt::format("{:016x}", plan_hash);
  common_.optimizer = config.train.optimizer;
}

Result<std::optional<std::filesystem::path>> CheckpointCommitter::add(int rank, const Json& event) {
  MOTLEY_ASSIGN(ShardMessage message, read_shard_event(event));
  CheckpointState state = common_;
  state.step = message.state.step;
  state.samples = message.state.samples;
  state.tokens = message.state.tokens;
  state.optimizer_updates = message.state.optimizer_updates;
  const auto [it, is_first] = open_.try_emplace(state.step, Open{state, {}});
  Open& open = it->second;
  if (!is_first && (open.state.samples != state.samples || open.state.tokens != state.tokens ||
                    open.state.optimizer_updates != state.optimizer_updates)) {
    return Error{
        ErrorCode::kInternal,
        fmt::format("rank {} saved step {} in another state than its peers", rank, state.step), "",
        ""};
  }
  open.shards[rank] = std::move(message.shard);
  if (static_cast<int>(open.shards.size()) < rank_count_) {
    return std::optional<std::filesystem::path>{};
  }
  std::vector<Shard> shards;
  for (auto& [index, shard] : open.shards) shards.push_back(std::move(shard));
  MOTLEY_ASSIGN(std::filesystem::path folder,
                commit_checkpoint(run_dir_, open.state, shards, config_to_json(config_),
                                  huggingface_config(config_.model)));
  open_.erase(it);
  MOTLEY_TRY(prune_checkpoints(run_dir_, config_.checkpoint.keep));
  return std::optional(std::move(folder));
}

}  // namespace motley
