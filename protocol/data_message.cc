#include "protocol/data_message.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"

namespace motley {

namespace {

constexpr std::size_t kRemarksMax = 64;

}  // namespace

Json data_event(const DataMessage& message) {
  Json event = {{"event", "data"}, {"bytes", message.bytes}, {"hash", message.hash}};
  if (!message.remarks.empty()) event["remarks"] = message.remarks;
  return event;
}

Result<DataMessage> read_data_event(const Json& event) {
  static const std::string kSource = "a worker's data event";
  DataMessage message;
  MOTLEY_ASSIGN(const auto bytes, json_get<std::int64_t>(event, "bytes", kSource));
  if (bytes < 0) {
    return Error{ErrorCode::kCorrupt, fmt::format("malformed data event, {}", kSource),
                 fmt::format("'bytes' is {}, less than 0", bytes),
                 "use the same version of Motley on every machine"};
  }
  message.bytes = static_cast<std::uint64_t>(bytes);
  MOTLEY_ASSIGN(message.hash, json_get<std::string>(event, "hash", kSource));
  if (!event.contains("remarks")) return message;
  const Json& remarks = event["remarks"];
  const auto is_text = [](const Json& remark) { return remark.is_string(); };
  if (!remarks.is_array() || remarks.size() > kRemarksMax ||
      !std::ranges::all_of(remarks, is_text)) {
    return Error{ErrorCode::kCorrupt, fmt::format("malformed data event, {}", kSource),
                 fmt::format("'remarks' is not a list of at most {} texts", kRemarksMax),
                 "use the same version of Motley on every machine"};
  }
  message.remarks = remarks.get<std::vector<std::string>>();
  return message;
}

}  // namespace motley
