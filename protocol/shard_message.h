// The event with which a rank reports that its part of a checkpoint is written.
#pragma once

#include <cstdint>

#include "base/json_fwd.h"
#include "base/result.h"
#include "checkpoint/save/shard_report.h"

namespace motley {

[[nodiscard]] Json shard_event(const ShardReport& report);
// kCorrupt if it is malformed.
[[nodiscard]] Result<ShardReport> read_shard_event(const Json& event);

// The event with which a rank reports that its part could not be written, and that it continues.
struct ShardFailure {
  std::int64_t step = 0;
  Error error;
};

[[nodiscard]] Json shard_failed_event(const ShardFailure& failure);
// kCorrupt if it is malformed.
[[nodiscard]] Result<ShardFailure> read_shard_failed_event(const Json& event);

}  // namespace motley
