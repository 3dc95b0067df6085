#include "protocol/data_message.h"

#include <fmt/format.h>

#include "base/json.h"

namespace motley {

Json data_event(const DataMessage& message) {
  return {{"event", "data"}, {"bytes", message.bytes}, {"hash", message.hash}};
}

Result<DataMessage> read_data_event(const Json& event) {
  static const std::string kSource = "a worker's data event";
  DataMessage message;
  MOTLEY_ASSIGN(const auto bytes, json_get<std::int64_t>(event, "bytes", kSource));
  if (bytes < 0) {
    return Error{ErrorCode::kCorrupt, fmt::format("unusable account of the data, {}", kSource),
                 fmt::format("'bytes' is {}, less than 0", bytes),
                 "use the same version of Motley on every machine"};
  }
  message.bytes = static_cast<std::uint64_t>(bytes);
  MOTLEY_ASSIGN(message.hash, json_get<std::string>(event, "hash", kSource));
  return message;
}

}  // namespace motley
