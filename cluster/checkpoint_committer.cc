#include "cluster/checkpoint_committer.h"

#include <fmt/format.h>

#include "job/config_io.h"
#include "models/hf_config.h"

namespace motley {
namespace {

const std::string kSource = "a worker's shard event";

struct Progressed {
  std::int64_t step = 0;
  std::int64_t samples = 0;
  std::int64_t tokens = 0;
  std::int64_t optimizer_updates = 0;
};

Result<Progressed> read_progress(const Json& event) {
  Progressed read;
  MOTLEY_ASSIGN(read.step, json_get<std::int64_t>(event, "step", kSource));
  MOTLEY_ASSIGN(read.samples, json_get<std::int64_t>(event, "samples", kSource));
  MOTLEY_ASSIGN(read.tokens, json_get<std::int64_t>(event, "tokens", kSource));
  MOTLEY_ASSIGN(read.optimizer_updates,
                json_get<std::int64_t>(event, "optimizer_updates", kSource));
  return read;
}

}  // namespace

CheckpointCommitter::CheckpointCommitter(std::filesystem::path run_dir, const Config& config,
                                         const ModelSpec& model, std::uint64_t plan_hash,
                                         int rank_count)
    : run_dir_(std::move(run_dir)), config_(config), rank_count_(rank_count) {
  common_.seed = config.train.seed;
  common_.model_hash = model.hash();
  common_.model_family = model.family;
  common_.plan_hash = fmt::format("{:016x}", plan_hash);
  common_.optimizer = config.train.optimizer;
}

Result<std::optional<std::filesystem::path>> CheckpointCommitter::add(int rank, const Json& event) {
  MOTLEY_ASSIGN(const Progressed read, read_progress(event));
  CheckpointState state = common_;
  state.step = read.step;
  state.samples = static_cast<std::uint64_t>(read.samples);
  state.tokens = static_cast<std::uint64_t>(read.tokens);
  state.optimizer_updates = read.optimizer_updates;
  const auto [it, is_first] = open_.try_emplace(state.step, Open{state, {}});
  Open& open = it->second;
  if (!is_first && (open.state.samples != state.samples || open.state.tokens != state.tokens ||
                    open.state.optimizer_updates != state.optimizer_updates)) {
    return Error{ErrorCode::kInternal,
                 fmt::format("rank {} saved step {} in another state than its peers", rank,
                             state.step),
                 "", ""};
  }
  MOTLEY_ASSIGN(open.shards[rank], shard_from_json(event.value("shard", Json::object()), kSource));
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

Json shard_event(const CheckpointState& state, const Shard& shard) {
  return {{"event", "shard"},
          {"step", state.step},
          {"samples", state.samples},
          {"tokens", state.tokens},
          {"optimizer_updates", state.optimizer_updates},
          {"shard", shard_to_json(shard)}};
}

}  // namespace motley
