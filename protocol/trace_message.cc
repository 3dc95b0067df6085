#include "protocol/trace_message.h"

#include "base/json.h"

namespace motley {

Json spans_to_json(const std::vector<TraceSpan>& spans) {
  Json list = Json::array();
  for (const TraceSpan& span : spans) {
    list.push_back({{"lane", span.lane},
                    {"name", span.name},
                    {"start_s", span.start_s},
                    {"duration_s", span.duration_s},
                    {"step", span.step}});
  }
  return list;
}

Result<std::vector<TraceSpan>> spans_from_json(const Json& json, Rank sender) {
  static const std::string kSource = "a worker's trace";
  std::vector<TraceSpan> spans;
  if (!json.is_array()) return Error{ErrorCode::kCorrupt, "a worker's trace is not a list", "", ""};
  for (const Json& item : json) {
    TraceSpan span;
    span.rank = sender;
    MOTLEY_ASSIGN(span.lane, json_get<std::string>(item, "lane", kSource));
    MOTLEY_ASSIGN(span.name, json_get<std::string>(item, "name", kSource));
    MOTLEY_ASSIGN(span.start_s, json_get<double>(item, "start_s", kSource));
    MOTLEY_ASSIGN(span.duration_s, json_get<double>(item, "duration_s", kSource));
    MOTLEY_ASSIGN(const auto step, json_get<std::int64_t>(item, "step", kSource));
    span.step = static_cast<int>(step);
    spans.push_back(std::move(span));
  }
  return spans;
}

}  // namespace motley
