#include "protocol/trace_message.h"

#include <fmt/format.h>

#include <utility>

#include "base/json.h"

namespace motley {
namespace {

Json span_to_json(const TraceSpan& span) {
  return {{"lane", span.lane},
          {"name", span.name},
          {"start_s", span.start_s},
          {"duration_s", span.duration_s},
          {"step", span.step}};
}

Json event_of(Json spans) {
  return {{"event", "trace"}, {"spans", std::move(spans)}};
}

}  // namespace

void send_trace(const TraceRecorder& recorded, const std::function<void(const Json&)>& send) {
  std::int64_t left_out = recorded.left_out();
  Json piece = Json::array();
  std::size_t piece_bytes = 0;
  for (const TraceSpan& span : recorded.spans()) {
    Json json = span_to_json(span);
    const std::size_t bytes = json.dump(-1, ' ', false, Json::error_handler_t::replace).size() + 1;
    if (bytes > kTracePieceBytes) {
      ++left_out;
      continue;
    }
    if (piece_bytes + bytes > kTracePieceBytes) {
      send(event_of(std::exchange(piece, Json::array())));
      piece_bytes = 0;
    }
    piece.push_back(std::move(json));
    piece_bytes += bytes;
  }
  if (piece.empty() && left_out == 0) return;
  Json last = event_of(std::move(piece));
  if (left_out > 0) last["left_out"] = left_out;
  send(last);
}

Result<TracePiece> trace_piece_from_json(const Json& event, Rank sender) {
  static const std::string kSource = "a worker's trace";
  const auto malformed = [](const std::string& cause) {
    return Error{ErrorCode::kCorrupt, fmt::format("malformed spans, {}", kSource), cause,
                 "use the same version of Motley on every machine"};
  };
  TracePiece piece;
  const auto list = event.find("spans");
  if (list == event.end() || !list->is_array()) return malformed("the list is missing");
  for (const Json& item : *list) {
    TraceSpan span;
    span.rank = sender;
    MOTLEY_ASSIGN(span.lane, json_get<std::string>(item, "lane", kSource));
    MOTLEY_ASSIGN(span.name, json_get<std::string>(item, "name", kSource));
    MOTLEY_ASSIGN(span.start_s, json_get<double>(item, "start_s", kSource));
    MOTLEY_ASSIGN(span.duration_s, json_get<double>(item, "duration_s", kSource));
    MOTLEY_ASSIGN(const auto step, json_get<std::int64_t>(item, "step", kSource));
    if (!std::in_range<int>(step)) return malformed(fmt::format("a span of step {}", step));
    span.step = static_cast<int>(step);
    piece.spans.push_back(std::move(span));
  }
  if (event.contains("left_out")) {
    MOTLEY_ASSIGN(piece.left_out, json_get<std::int64_t>(event, "left_out", kSource));
  }
  return piece;
}

}  // namespace motley
