#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "plan/group_limits.h"
#include "protocol/message_fields.h"
#include "protocol/protocol.h"

namespace motley {
namespace {

// JSON has no notation for values that are not finite, but a diverged run must be able to report
// them.
Json number_to_json(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

Result<double> get_number(const Json& object, const char* key, const std::string& source) {
  if (object.is_object() && object.contains(key) && object[key].is_string()) {
    const auto& text = object[key].get_ref<const std::string&>();
    if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
    if (text == "inf") return std::numeric_limits<double>::infinity();
    if (text == "-inf") return -std::numeric_limits<double>::infinity();
  }
  return json_get<double>(object, key, source);
}

Result<std::optional<double>> find_share(const Json& object,
                                         const char* key,
                                         const std::string& source) {
  if (!object.contains(key)) return std::optional<double>();
  MOTLEY_ASSIGN(const double value, json_get<double>(object, key, source));
  if (!(value >= 0 && value <= 1)) {
    return Error{ErrorCode::kCorrupt, fmt::format("malformed step report, {}", source),
                 fmt::format("'{}' is {}, not from 0 to 1", key, value), ""};
  }
  return std::optional(value);
}

Result<std::int64_t> get_count(const Json& object,
                               const char* key,
                               std::int64_t least,
                               const std::string& source) {
  MOTLEY_ASSIGN(const std::int64_t value, json_get<std::int64_t>(object, key, source));
  if (value < least) {
    return Error{ErrorCode::kCorrupt, fmt::format("malformed step report, {}", source),
                 fmt::format("'{}' is {}, less than {}", key, value, least), ""};
  }
  return value;
}

Json waits_to_json(const WaitTimes& waits) {
  Json json = Json::object();
  for (std::size_t cause = 0; cause < kWaitCauseNames.size(); ++cause) {
    json[kWaitCauseNames[cause]] = waits.seconds[cause];
  }
  return json;
}

Result<WaitTimes> waits_from_json(const Json& json, const std::string& source) {
  WaitTimes waits;
  if (!json.is_object() || !json.contains("wait_s")) {
    return unusable_message(source, "'wait_s' is missing");
  }
  for (std::size_t cause = 0; cause < kWaitCauseNames.size(); ++cause) {
    MOTLEY_ASSIGN(waits.seconds[cause],
                  json_get<double>(json["wait_s"], kWaitCauseNames[cause], source + ", wait_s"));
  }
  return waits;
}

// Pairs of rank and bytes.
Json sent_to_json(const std::vector<StepReport::Sent>& sent) {
  Json list = Json::array();
  for (const StepReport::Sent& each : sent) {
    list.push_back(Json::array({each.to.value, each.bytes}));
  }
  return list;
}

bool is_count_up_to(const Json& value, std::uint64_t max) {
  if (!value.is_number_integer()) return false;
  if (!value.is_number_unsigned() && value.get<std::int64_t>() < 0) return false;
  return value.get<std::uint64_t>() <= max;
}

Result<std::vector<StepReport::Sent>> sent_from_json(const Json& json, const std::string& source) {
  constexpr std::uint64_t kSentBytesMax = std::uint64_t{1} << 62;
  if (!json.is_object() || !json.contains("sent") || !json["sent"].is_array()) {
    return unusable_message(source, "'sent' is not a list");
  }
  std::vector<StepReport::Sent> sent;
  for (const Json& pair : json["sent"]) {
    const bool is_pair = pair.is_array() && pair.size() == 2 &&
                         is_count_up_to(pair[0], kRanksMax - 1) &&
                         is_count_up_to(pair[1], kSentBytesMax);
    if (!is_pair)
      return unusable_message(source, "'sent' has an entry that is not a rank with its bytes");
    const Rank to{pair[0].get<std::int32_t>()};
    if (!sent.empty() && !(sent.back().to < to)) {
      return unusable_message(source, "the ranks of 'sent' do not ascend");
    }
    sent.push_back({to, pair[1].get<std::uint64_t>()});
  }
  return sent;
}

bool is_error_code(std::int64_t value) {
  switch (static_cast<ErrorCode>(value)) {
    case ErrorCode::kInternal:
    case ErrorCode::kUsage:
    case ErrorCode::kConfig:
    case ErrorCode::kPeer:
    case ErrorCode::kUnauthorised:
    case ErrorCode::kInfeasible:
    case ErrorCode::kCorrupt:
    case ErrorCode::kData:
    case ErrorCode::kDiverged:
    case ErrorCode::kInterrupted:
    case ErrorCode::kTerminated:
      return true;
  }
  return false;
}

}  // namespace

Json step_to_json(const StepReport& report) {
  Json json = {{"event", "step"},
               {"step", report.step},
               {"loss", number_to_json(report.outcome.loss)},
               {"tokens", report.outcome.tokens},
               {"step_s", report.step_s},
               {"lr", report.outcome.lr},
               {"grad_norm", number_to_json(report.outcome.grad_norm)},
               {"skipped", report.outcome.skipped},
               {"wire_bytes", report.wire_bytes},
               {"compute_s", report.times.compute_s},
               {"codec_s", report.times.codec_s},
               {"data_s", report.times.data_s},
               {"optimizer_s", report.times.optimizer_s},
               {"wait_s", waits_to_json(report.times.wait_s)},
               {"memory_bytes", report.memory_bytes},
               {"sent", sent_to_json(report.sent)}};
  if (report.outcome.gradient_scale) json["gradient_scale"] = *report.outcome.gradient_scale;
  if (report.outcome.accuracy) json["accuracy"] = *report.outcome.accuracy;
  if (report.evaluation) {
    json["eval_loss"] = number_to_json(report.evaluation->loss);
    json["eval_tokens"] = report.evaluation->tokens;
    json["eval_bytes_per_token"] = report.evaluation->bytes_per_token;
    if (report.evaluation->accuracy) json["eval_accuracy"] = *report.evaluation->accuracy;
    if (report.evaluation->top5_accuracy) {
      json["eval_top5_accuracy"] = *report.evaluation->top5_accuracy;
    }
  }
  return json;
}

Result<StepReport> step_from_json(const Json& json, const std::string& source) {
  StepReport report;
  MOTLEY_ASSIGN(report.step, get_count(json, "step", 1, source));
  MOTLEY_ASSIGN(report.outcome.loss, get_number(json, "loss", source));
  MOTLEY_ASSIGN(report.outcome.tokens, get_count(json, "tokens", 0, source));
  MOTLEY_ASSIGN(report.outcome.accuracy, find_share(json, "accuracy", source));
  MOTLEY_ASSIGN(report.step_s, json_get<double>(json, "step_s", source));
  MOTLEY_ASSIGN(report.outcome.lr, json_get<double>(json, "lr", source));
  MOTLEY_ASSIGN(report.outcome.grad_norm, get_number(json, "grad_norm", source));
  MOTLEY_ASSIGN(report.outcome.skipped, json_get<bool>(json, "skipped", source));
  if (json.contains("gradient_scale")) {
    MOTLEY_ASSIGN(report.outcome.gradient_scale, get_number(json, "gradient_scale", source));
  }
  MOTLEY_ASSIGN(const std::int64_t wire_bytes, get_count(json, "wire_bytes", 0, source));
  report.wire_bytes = static_cast<std::uint64_t>(wire_bytes);
  MOTLEY_ASSIGN(report.times.compute_s, json_get<double>(json, "compute_s", source));
  if (json.contains("data_s")) {
    MOTLEY_ASSIGN(report.times.data_s, json_get<double>(json, "data_s", source));
  }
  MOTLEY_ASSIGN(report.times.codec_s, json_get<double>(json, "codec_s", source));
  MOTLEY_ASSIGN(report.times.optimizer_s, json_get<double>(json, "optimizer_s", source));
  MOTLEY_ASSIGN(report.times.wait_s, waits_from_json(json, source));
  MOTLEY_ASSIGN(report.memory_bytes, get_count(json, "memory_bytes", 0, source));
  MOTLEY_ASSIGN(report.sent, sent_from_json(json, source));
  if (json.contains("eval_loss")) {
    Evaluation& evaluation = report.evaluation.emplace();
    MOTLEY_ASSIGN(evaluation.loss, get_number(json, "eval_loss", source));
    MOTLEY_ASSIGN(evaluation.tokens, get_count(json, "eval_tokens", 0, source));
    MOTLEY_ASSIGN(evaluation.bytes_per_token,
                  json_get<double>(json, "eval_bytes_per_token", source));
    MOTLEY_ASSIGN(evaluation.accuracy, find_share(json, "eval_accuracy", source));
    MOTLEY_ASSIGN(evaluation.top5_accuracy, find_share(json, "eval_top5_accuracy", source));
  }
  return report;
}

Json error_to_json(const Error& error) {
  Json event{{"event", "error"},
             {"code", static_cast<int>(error.code)},
             {"what", error.what},
             {"cause", error.cause},
             {"remedy", error.remedy}};
  if (error.peer_state == PeerState::kLost && error.peer) event["lost"] = *error.peer;
  if (error.peer_state == PeerState::kSilent) event["silent"] = true;
  return event;
}

Error error_from_json(const Json& json) {
  constexpr std::size_t kLineBytesMax = 4096;
  // Lines from another machine, without terminal control sequences.
  const auto text = [&](const char* key) {
    const Result<std::string> value = json_get<std::string>(json, key, "error event");
    std::string lines;
    for (std::size_t at = 0; value.ok() && at < value->size();) {
      const std::size_t end = std::min(value->find('\n', at), value->size());
      lines += excerpt(std::string_view(*value).substr(at, end - at), kLineBytesMax);
      if (end < value->size()) lines += '\n';
      at = end + 1;
    }
    return lines;
  };
  Error error{ErrorCode::kInternal, text("what"), text("cause"), text("remedy")};
  const Result<std::int64_t> code = json_get<std::int64_t>(json, "code", "error event");
  if (code.ok() && is_error_code(*code)) error.code = static_cast<ErrorCode>(*code);
  if (error.what.empty()) error.what = "an error without a description";
  if (error.code != ErrorCode::kPeer) return error;
  const Result<std::int64_t> lost = get_count(json, "lost", 0, "error event");
  if (lost.ok() && *lost < static_cast<std::int64_t>(kRanksMax)) {
    error.peer_state = PeerState::kLost;
    error.peer = static_cast<int>(*lost);
  } else if (json.contains("silent")) {
    error.peer_state = PeerState::kSilent;
  }
  return error;
}

}  // namespace motley
