#include "protocol/data_message.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "protocol/message_fields.h"

namespace motley {

namespace {

constexpr std::size_t kRemarksMax = 64;
constexpr std::size_t kClassNamesMax = 65536;
constexpr std::size_t kClassNamesBytesMax = 3U << 20;  // as sent; the launcher reads lines of 4 MiB

// Whether there are names, and no more than one event holds.
bool are_sent(const std::vector<std::string>& class_names) {
  if (class_names.empty() || class_names.size() > kClassNamesMax) return false;
  const std::string sent = Json(class_names).dump(-1, ' ', false, Json::error_handler_t::replace);
  return sent.size() <= kClassNamesBytesMax;
}

// The texts of an optional member.
Result<std::vector<std::string>> texts_of(const Json& event,
                                          const char* key,
                                          std::size_t count_max,
                                          const std::string& source) {
  if (!event.contains(key)) return std::vector<std::string>();
  const Json& texts = event[key];
  const auto is_text = [](const Json& text) { return text.is_string(); };
  if (texts.is_array() && texts.size() <= count_max && std::ranges::all_of(texts, is_text)) {
    return texts.get<std::vector<std::string>>();
  }
  return Error{ErrorCode::kCorrupt, fmt::format("malformed data event, {}", source),
               fmt::format("'{}' is not a list of at most {} texts", key, count_max),
               "use the same version of Motley on every machine"};
}

}  // namespace

Json data_event(const DataMessage& message) {
  Json event = {{"event", "data"}, {"bytes", message.bytes}, {"hash", message.hash}};
  if (!message.remarks.empty()) event["remarks"] = message.remarks;
  if (are_sent(message.class_names)) event["classes"] = message.class_names;
  if (message.epoch_samples > 0) event["epoch_samples"] = message.epoch_samples;
  return event;
}

Result<DataMessage> read_data_event(const Json& event) {
  static const std::string kSource = "a worker's data event";
  DataMessage message;
  MOTLEY_ASSIGN(const std::int64_t bytes, count_of(event, "bytes", kSource));
  message.bytes = static_cast<std::uint64_t>(bytes);
  if (event.contains("epoch_samples")) {
    MOTLEY_ASSIGN(const std::int64_t samples, count_of(event, "epoch_samples", kSource));
    message.epoch_samples = static_cast<std::uint64_t>(samples);
  }
  MOTLEY_ASSIGN(message.hash, json_get<std::string>(event, "hash", kSource));
  MOTLEY_ASSIGN(message.remarks, texts_of(event, "remarks", kRemarksMax, kSource));
  MOTLEY_ASSIGN(message.class_names, texts_of(event, "classes", kClassNamesMax, kSource));
  return message;
}

}  // namespace motley
