#include "record/trace_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "base/json/json_fields.h"
#include "plan/group_limits.h"

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

constexpr double kSecondsPerMicrosecond = 1e-6;
// Far above any run, and small enough for arithmetic.
constexpr int kTracedStepsMax = std::numeric_limits<int>::max();
constexpr int kLanesMax = 100'000;  // per rank: one per link and some more

// Names are in separate events before the spans of their lane.
class StepReader {
 public:
  Result<void> read(const JsonFields& event) {
    MOTLEY_ASSIGN(const std::string kind, event.text("ph"));
    MOTLEY_ASSIGN(const std::int64_t rank, event.integer("pid", 0, kRanksMax - 1));
    if (kind == "M") return read_name(event, static_cast<int>(rank));
    if (kind == "X") return read_span(event, Rank{static_cast<int>(rank)});
    return event.bad("ph", "neither M nor X");
  }

  Result<TracedStep> finish(const JsonFields& document) && {
    if (read_.spans.empty()) return document.bad("traceEvents", "no step was recorded");
    double start_s = read_.spans.front().start_s;
    for (const TraceSpan& span : read_.spans) {
      start_s = std::min(start_s, span.start_s);
      if (span.rank.index() >= read_.rank_names.size()) {
        return document.bad("traceEvents", "a rank without a name");
      }
    }
    for (TraceSpan& span : read_.spans) span.start_s -= start_s;
    return std::move(read_);
  }

 private:
  Result<void> read_name(const JsonFields& event, int rank) {
    MOTLEY_ASSIGN(const std::string what, event.text("name"));
    MOTLEY_ASSIGN(const JsonFields arguments, event.member("args"));
    MOTLEY_ASSIGN(std::string name, arguments.text("name"));
    if (what == "process_name") {
      const auto index = static_cast<std::size_t>(rank);
      if (index >= read_.rank_names.size()) read_.rank_names.resize(index + 1);
      // "rank 0: desktop/cpu"
      const std::size_t colon = name.find(": ");
      read_.rank_names[index] = colon == std::string::npos ? name : name.substr(colon + 2);
    } else {
      MOTLEY_ASSIGN(const std::int64_t lane, event.integer("tid", 0, kLanesMax));
      lanes_[{rank, lane}] = std::move(name);
    }
    return {};
  }

  Result<void> read_span(const JsonFields& event, Rank rank) {
    MOTLEY_ASSIGN(const JsonFields arguments, event.member("args"));
    MOTLEY_ASSIGN(const std::int64_t step, arguments.integer("step", 0, kTracedStepsMax));
    if (step < read_.step) return {};
    if (step > read_.step) read_.spans.clear();
    read_.step = static_cast<int>(step);
    MOTLEY_ASSIGN(const std::int64_t lane, event.integer("tid", 0, kLanesMax));
    const auto named = lanes_.find({rank.value, lane});
    if (named == lanes_.end()) return event.bad("tid", "a lane without a name");
    TraceSpan span{rank, named->second, {}, 0, 0, read_.step};
    MOTLEY_ASSIGN(span.name, event.text("name"));
    MOTLEY_ASSIGN(span.start_s, event.quantity("ts"));
    MOTLEY_ASSIGN(span.duration_s, event.quantity("dur"));
    span.start_s *= kSecondsPerMicrosecond;
    span.duration_s *= kSecondsPerMicrosecond;
    read_.spans.push_back(std::move(span));
    return {};
  }

  TracedStep read_;
  std::map<std::pair<int, std::int64_t>, std::string> lanes_;  // of rank and thread
};

}  // namespace

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

Result<TracedStep> last_traced_step(std::string_view text, const std::string& source) {
  MOTLEY_ASSIGN(const Json json, parse_json(text, source));
  const JsonSource place(source, text);
  const JsonFields document(json, place, ErrorCode::kCorrupt);
  // Besides its spans a trace contains the names of ranks and lanes.
  MOTLEY_ASSIGN(const std::vector<JsonFields> events,
                document.items("traceEvents", 0, 2 * kTraceSpansMax));
  StepReader reader;
  for (const JsonFields& event : events) MOTLEY_TRY(reader.read(event));
  return std::move(reader).finish(document);
}

}  // namespace motley
