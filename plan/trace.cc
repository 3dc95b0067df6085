#include "plan/trace.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "base/json.h"

namespace motley {

Json trace_to_json(const std::vector<TraceSpan>& spans,
                   const std::vector<std::string>& rank_names) {
  constexpr double kMicrosecondsPerSecond = 1e6;
  Json events = Json::array();
  for (std::size_t r = 0; r < rank_names.size(); ++r) {
    events.push_back({{"ph", "M"},
                      {"name", "process_name"},
                      {"pid", r},
                      {"args", {{"name", fmt::format("rank {}: {}", r, rank_names[r])}}}});
  }
  std::map<std::pair<Rank, std::string>, int> lanes;  // to the number of the thread
  std::map<Rank, int> lane_counts;
  for (const TraceSpan& span : spans) {
    const auto [lane, is_new] = lanes.try_emplace({span.rank, span.lane}, lane_counts[span.rank]);
    if (is_new) {
      ++lane_counts[span.rank];
      events.push_back({{"ph", "M"},
                        {"name", "thread_name"},
                        {"pid", span.rank.value},
                        {"tid", lane->second},
                        {"args", {{"name", span.lane}}}});
    }
    events.push_back({{"ph", "X"},
                      {"name", span.name},
                      {"pid", span.rank.value},
                      {"tid", lane->second},
                      {"ts", span.start_s * kMicrosecondsPerSecond},
                      {"dur", span.duration_s * kMicrosecondsPerSecond},
                      {"args", {{"step", span.step}}}});
  }
  return {{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}};
}

}  // namespace motley
