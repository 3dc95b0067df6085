#include "protocol/shard_message.h"

#include "base/json.h"

namespace motley {

Json shard_event(const ShardMessage& message) {
  const CheckpointState& state = message.state;
  return {{"event", "shard"},
          {"step", state.step},
          {"samples", state.samples},
          {"tokens", state.tokens},
          {"optimizer_updates", state.optimizer_updates},
          {"shard", shard_to_json(message.shard)}};
}

Result<ShardMessage> read_shard_event(const Json& event) {
  static const std::string kSource = "a worker's shard event";
  ShardMessage message;
  CheckpointState& state = message.state;
  MOTLEY_ASSIGN(state.step, json_get<std::int64_t>(event, "step", kSource));
  MOTLEY_ASSIGN(const auto samples, json_get<std::int64_t>(event, "samples", kSource));
  MOTLEY_ASSIGN(const auto tokens, json_get<std::int64_t>(event, "tokens", kSource));
  MOTLEY_ASSIGN(state.optimizer_updates,
                json_get<std::int64_t>(event, "optimizer_updates", kSource));
  state.samples = static_cast<std::uint64_t>(samples);
  state.tokens = static_cast<std::uint64_t>(tokens);
  const auto shard = event.find("shard");
  if (shard == event.end()) return Error{ErrorCode::kCorrupt, kSource + " has no shard", "", ""};
  MOTLEY_ASSIGN(message.shard, shard_from_json(*shard, kSource));
  return message;
}

}  // namespace motley
