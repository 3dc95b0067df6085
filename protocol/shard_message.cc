#include "protocol/shard_message.h"

#include <fmt/format.h>

#include "base/json.h"
#include "protocol/protocol.h"

namespace motley {
namespace {

constexpr const char* kSource = "a worker's shard event";

Error malformed(const std::string& cause) {
  return {ErrorCode::kCorrupt, fmt::format("malformed shard event, {}", kSource), cause,
          "use the same version of Motley on every machine"};
}

Result<std::int64_t> get_count(const Json& event, const char* key) {
  MOTLEY_ASSIGN(const std::int64_t count, json_get<std::int64_t>(event, key, kSource));
  if (count < 0) return malformed(fmt::format("'{}' is {}, less than 0", key, count));
  return count;
}

}  // namespace

Json shard_event(const ShardMessage& message) {
  const CheckpointState& state = message.state;
  Json event = {{"event", "shard"},
                {"step", state.step},
                {"samples", state.samples},
                {"tokens", state.tokens},
                {"optimizer_updates", state.optimizer_updates},
                {"shard", shard_to_json(message.shard)}};
  if (state.gradient_scale) {
    event["gradient_scale"] = gradient_scale_to_json(*state.gradient_scale);
  }
  if (state.evaluations) {
    event["evaluations"] = evaluation_record_to_json(*state.evaluations);
  }
  if (!state.round_tokens.empty()) event["round_tokens"] = state.round_tokens;
  return event;
}

Result<ShardMessage> read_shard_event(const Json& event) {
  ShardMessage message;
  CheckpointState& state = message.state;
  MOTLEY_ASSIGN(state.step, get_count(event, "step"));
  MOTLEY_ASSIGN(const std::int64_t samples, get_count(event, "samples"));
  MOTLEY_ASSIGN(const std::int64_t tokens, get_count(event, "tokens"));
  MOTLEY_ASSIGN(state.optimizer_updates, get_count(event, "optimizer_updates"));
  state.samples = static_cast<std::uint64_t>(samples);
  state.tokens = static_cast<std::uint64_t>(tokens);
  if (const auto scale = event.find("gradient_scale"); scale != event.end()) {
    MOTLEY_ASSIGN(state.gradient_scale, gradient_scale_from_json(*scale, kSource));
  }
  if (const auto record = event.find("evaluations"); record != event.end()) {
    MOTLEY_ASSIGN(state.evaluations, evaluation_record_from_json(*record, kSource));
  }
  MOTLEY_ASSIGN(state.round_tokens, round_tokens_from_json(event, kSource));
  const auto shard = event.find("shard");
  if (shard == event.end()) return malformed("it has no shard");
  MOTLEY_ASSIGN(message.shard, shard_from_json(*shard, kSource));
  return message;
}

Json shard_failed_event(const ShardFailure& failure) {
  Json event = error_to_json(failure.error);
  event["event"] = "shard_failed";
  event["step"] = failure.step;
  return event;
}

Result<ShardFailure> read_shard_failed_event(const Json& event) {
  ShardFailure failure;
  MOTLEY_ASSIGN(failure.step, get_count(event, "step"));
  failure.error = error_from_json(event);
  return failure;
}

}  // namespace motley
