#include "pipeline/schedule/action_rules.h"

#include "base/check.h"

namespace motley {
namespace {

ChunkId next_of(ChunkId chunk) {
  return {chunk.value + 1};
}

ChunkId previous_of(ChunkId chunk) {
  return {chunk.value - 1};
}

constexpr ChunkId kFirstChunk{0};

}  // namespace

std::vector<std::vector<Rank>> owners_of(const Plan& plan) {
  std::vector<std::vector<Rank>> owners;
  for (const ChunkPlan& chunk : plan.chunks) {
    owners.push_back(micro_batch_owners(chunk));
  }
  return owners;
}

std::optional<Rank> ActionRules::rank_of(const Action& action) const {
  switch (action.kind) {
    case ActionKind::kLoad:
    case ActionKind::kSendTargets:
      return owner(kFirstChunk, action.micro);
    case ActionKind::kRecvTargets:
      return owner(last_chunk(), action.micro);
    case ActionKind::kReduce:
    case ActionKind::kReduceTied:
    case ActionKind::kVote:
    case ActionKind::kStep:
    case ActionKind::kOffer:
    case ActionKind::kAdopt:
      return std::nullopt;
    default:
      return owner(action.chunk, action.micro);
  }
}

Values ActionRules::needs(const Action& action) const {
  const auto [kind, chunk, micro] = action;
  Values values;
  if (kind == ActionKind::kForward) {
    const bool is_first = chunk == kFirstChunk;
    values.add({is_first ? ValueKind::kSamples : ValueKind::kActivation, chunk, micro});
    if (chunk == last_chunk()) values.add({ValueKind::kTargets, chunk, micro});
  } else if (kind == ActionKind::kBackward || kind == ActionKind::kBackwardInput) {
    values.add({ValueKind::kKept, chunk, micro});
    if (chunk != last_chunk()) values.add({ValueKind::kGradient, chunk, micro});
  } else if (kind == ActionKind::kBackwardWeight) {
    values.add({ValueKind::kWeightPart, chunk, micro});
  }
  return values;
}

Values ActionRules::makes(const Action& action) const {
  const auto [kind, chunk, micro] = action;
  Values values;
  if (kind == ActionKind::kLoad) {
    values.add({ValueKind::kSamples, kFirstChunk, micro});
    values.add({ValueKind::kTargets, last_chunk(), micro});
  } else if (kind == ActionKind::kForward) {
    values.add({ValueKind::kKept, chunk, micro});
    if (chunk != last_chunk()) values.add({ValueKind::kActivation, next_of(chunk), micro});
  } else if (kind == ActionKind::kBackward || kind == ActionKind::kBackwardInput) {
    if (kind == ActionKind::kBackwardInput) values.add({ValueKind::kWeightPart, chunk, micro});
    if (chunk != kFirstChunk) values.add({ValueKind::kGradient, previous_of(chunk), micro});
  }
  return values;
}

std::optional<Value> ActionRules::sent_by(const Action& action) const {
  const auto [kind, chunk, micro] = action;
  if (kind == ActionKind::kSendTargets) return Value{ValueKind::kTargets, last_chunk(), micro};
  if (kind == ActionKind::kSendActivation && chunk != last_chunk()) {
    return Value{ValueKind::kActivation, next_of(chunk), micro};
  }
  if (kind == ActionKind::kSendGradient && chunk != kFirstChunk) {
    return Value{ValueKind::kGradient, previous_of(chunk), micro};
  }
  return std::nullopt;
}

std::optional<Value> ActionRules::posted_by(const Action& action) const {
  const auto [kind, chunk, micro] = action;
  if (kind == ActionKind::kRecvTargets) return Value{ValueKind::kTargets, last_chunk(), micro};
  if (kind == ActionKind::kRecvActivation && chunk != kFirstChunk) {
    return Value{ValueKind::kActivation, chunk, micro};
  }
  if (kind == ActionKind::kRecvGradient && chunk != last_chunk()) {
    return Value{ValueKind::kGradient, chunk, micro};
  }
  return std::nullopt;
}

ChunkId ActionRules::maker_chunk(const Value& value) const {
  switch (value.kind) {
    case ValueKind::kActivation:
      return previous_of(value.chunk);
    case ValueKind::kGradient:
      return next_of(value.chunk);
    case ValueKind::kTargets:
    case ValueKind::kSamples:
      return kFirstChunk;
    case ValueKind::kKept:
    case ValueKind::kWeightPart:
      break;
  }
  return value.chunk;
}

Action ActionRules::send_of(const Value& value) const {
  switch (value.kind) {
    case ValueKind::kActivation:
      return {ActionKind::kSendActivation, maker_chunk(value), value.micro};
    case ValueKind::kGradient:
      return {ActionKind::kSendGradient, maker_chunk(value), value.micro};
    default:
      MOTLEY_CHECK(value.kind == ValueKind::kTargets, "a value that stays on its rank");
      return {ActionKind::kSendTargets, {}, value.micro};
  }
}

Action ActionRules::post_of(const Value& value) {
  switch (value.kind) {
    case ValueKind::kActivation:
      return {ActionKind::kRecvActivation, value.chunk, value.micro};
    case ValueKind::kGradient:
      return {ActionKind::kRecvGradient, value.chunk, value.micro};
    default:
      MOTLEY_CHECK(value.kind == ValueKind::kTargets, "a value that stays on its rank");
      return {ActionKind::kRecvTargets, {}, value.micro};
  }
}

bool ActionRules::adds_to_parameters(const Action& action) {
  return action.kind == ActionKind::kBackward || action.kind == ActionKind::kBackwardWeight;
}

bool ActionRules::adds_to_tied(const Action& action) const {
  const bool adds_input =
      action.kind == ActionKind::kBackward || action.kind == ActionKind::kBackwardInput;
  return (adds_input && action.chunk == kFirstChunk) ||
         (adds_to_parameters(action) && action.chunk == last_chunk());
}

LastChanges ActionRules::last_changes(std::span<const Action> actions) const {
  LastChanges last{std::vector<std::size_t>(chunk_count(), LastChanges::kNever)};
  for (std::size_t at = 0; at < actions.size(); ++at) {
    if (adds_to_parameters(actions[at])) last.chunks[actions[at].chunk.index()] = at;
    if (adds_to_tied(actions[at])) last.tied = at;
  }
  return last;
}

}  // namespace motley
