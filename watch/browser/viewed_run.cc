#include "watch/browser/viewed_run.h"

#include <algorithm>

#include "base/clock.h"
#include "base/json.h"
#include "watch/metrics/run_metrics.h"

namespace motley {
namespace {

// Texts of a run come from its configuration and machines and may hold arbitrary bytes; a browser
// gets valid UTF-8.
std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

RunChanges ViewedRun::look() {
  const RunView::Changes changes = view_.poll(unix_time_s());
  return {.description = changes.description,
          .state = changes.state,
          .events = changes.events > 0,
          .timeline = changes.timeline,
          .cut = changes.begins_anew,
          .last_step = view_.last_step(),
          .has_more = changes.has_more};
}

Result<std::string> ViewedRun::part(RunDocument part) {
  MOTLEY_TRY(view_.readable());
  switch (part) {
    case RunDocument::kDescription:
      return text_of(view_.description());
    case RunDocument::kState:
      return text_of(view_.state());
    case RunDocument::kTimeline:
      break;
  }
  return text_of(view_.timeline());
}

Result<std::string> ViewedRun::history(std::size_t points, std::int64_t after_step) {
  MOTLEY_TRY(view_.readable());
  return text_of(view_.history(std::max(points, History::kPointsMin), after_step));
}

Result<std::string> ViewedRun::events(std::size_t newest) {
  MOTLEY_TRY(view_.readable());
  return text_of(view_.events(newest));
}

Result<std::string> ViewedRun::metrics(MetricsFormat format) {
  MOTLEY_TRY(view_.readable());
  const auto families = run_metrics(view_);
  return format == MetricsFormat::kOpenMetrics ? openmetrics_text(families)
                                               : prometheus_text(families);
}

}  // namespace motley
