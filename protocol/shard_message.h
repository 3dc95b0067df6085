// The event by which a rank says that its part of a checkpoint is written.
#pragma once

#include "base/json_fwd.h"
#include "base/result.h"
#include "checkpoint/checkpoint.h"

namespace motley {

struct ShardMessage {
  CheckpointState state;  // only what changes from step to step: step, samples, tokens, updates
  Shard shard;
};

[[nodiscard]] Json shard_event(const ShardMessage& message);
// kCorrupt when it is malformed.
[[nodiscard]] Result<ShardMessage> read_shard_event(const Json& event);

}  // namespace motley
