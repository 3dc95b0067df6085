#include "protocol/shard_message.h"

#include <fmt/format.h>

#include "base/json.h"
#include "protocol/protocol.h"

namespace motley {
namespace {

constexpr const char* kSource = "a worker's shard event";

}  // namespace

Json shard_event(const ShardReport& report) {
  Json event = shard_report_to_json(report);
  event["event"] = "shard";
  return event;
}

Result<ShardReport> read_shard_event(const Json& event) {
  return shard_report_from_json(event, kSource);
}

Json shard_failed_event(const ShardFailure& failure) {
  Json event = error_to_json(failure.error);
  event["event"] = "shard_failed";
  event["step"] = failure.step;
  return event;
}

Result<ShardFailure> read_shard_failed_event(const Json& event) {
  ShardFailure failure;
  MOTLEY_ASSIGN(failure.step, json_get<std::int64_t>(event, "step", kSource));
  if (failure.step < 0) {
    return Error{ErrorCode::kCorrupt, fmt::format("malformed event, {}", kSource),
                 fmt::format("'step' is {}, less than 0", failure.step),
                 "use the same version of Motley on every machine"};
  }
  failure.error = error_from_json(event);
  return failure;
}

}  // namespace motley
