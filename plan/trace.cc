#include "plan/trace.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "base/check.h"
#include "base/json.h"

namespace motley {
namespace {

// Events are converted to text one by one: as JSON values, those of a long trace would take ten
// times the memory.
class EventList {
 public:
  void add(const Json& event) {
    text_ += text_.empty() ? "[" : ",\n";
    text_ += event.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

  [[nodiscard]] std::string text() && { return text_.empty() ? "[]" : std::move(text_) + "]"; }

 private:
  std::string text_;
};

}  // namespace

std::size_t trace_spans_max(int rank_count) {
  MOTLEY_CHECK(rank_count >= 1, "{} ranks", rank_count);
  return kTraceSpansMax / static_cast<std::size_t>(rank_count);
}

void TraceRecorder::add(TraceSpan span) {
  if (spans_.size() >= spans_max_) {
    ++left_out_;
  } else {
    spans_.push_back(std::move(span));
  }
}

std::string trace_text(const std::vector<TraceSpan>& spans,
                       const std::vector<std::string>& rank_names,
                       const std::vector<std::string>& notes) {
  constexpr double kMicrosecondsPerSecond = 1e6;
  EventList events;
  for (std::size_t r = 0; r < rank_names.size(); ++r) {
    events.add({{"ph", "M"},
                {"name", "process_name"},
                {"pid", r},
                {"args", {{"name", fmt::format("rank {}: {}", r, rank_names[r])}}}});
  }
  std::map<std::pair<Rank, std::string>, int> lanes;  // number of the thread
  std::map<Rank, int> lane_counts;
  for (const TraceSpan& span : spans) {
    const auto [lane, is_new] = lanes.try_emplace({span.rank, span.lane}, lane_counts[span.rank]);
    if (is_new) {
      ++lane_counts[span.rank];
      events.add({{"ph", "M"},
                  {"name", "thread_name"},
                  {"pid", span.rank.value},
                  {"tid", lane->second},
                  {"args", {{"name", span.lane}}}});
    }
    events.add({{"ph", "X"},
                {"name", span.name},
                {"pid", span.rank.value},
                {"tid", lane->second},
                {"ts", span.start_s * kMicrosecondsPerSecond},
                {"dur", span.duration_s * kMicrosecondsPerSecond},
                {"args", {{"step", span.step}}}});
  }
  const std::string other =
      notes.empty() ? "" : fmt::format("\"otherData\":{},", Json{{"left out", notes}}.dump());
  return fmt::format("{{\"displayTimeUnit\":\"ms\",{}\"traceEvents\":{}}}\n", other,
                     std::move(events).text());
}

}  // namespace motley
