#include "watch/view/run_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/json.h"
#include "plan/quantity_text.h"

namespace motley {
namespace {

// Enough for a run of 4,096 ranks.
constexpr std::size_t kLineBytesMax = std::size_t{4} << 20;

bool begins_launch(RunEventKind kind) {
  return kind == RunEventKind::kStarted || kind == RunEventKind::kResumed ||
         kind == RunEventKind::kRestarted;
}

}  // namespace

std::string reading_text(const ReadingProgress& progress) {
  const auto read = static_cast<double>(progress.read_bytes);
  const auto all = static_cast<double>(std::max<std::int64_t>(progress.bytes, 1));
  return fmt::format("reading the run: {:.0f} % of {}", 100 * read / all, bytes_text(all));
}

RunLines::RunLines(const RunFolder& folder)
    : metrics_lines_(folder.metrics_path(), kLineBytesMax),
      event_lines_(folder.events_path(), kLineBytesMax) {}

RunLines::NewLines RunLines::poll() {
  NewLines news;
  read_events(news);
  if (!news.has_more) read_metrics(news);
  update_progress(news);
  return news;
}

void RunLines::read_metrics(NewLines& news) {
  const LineFollower::NewLines lines = metrics_lines_.poll();
  news.has_more = lines.has_more;
  if (lines.begins_anew) {
    news.steps_begin_anew = true;
    history_.clear();
    recent_.clear();
  }
  for (const std::string& line : lines.lines) {
    const Result<Json> json = parse_json(line, "metrics");
    if (!json.ok()) continue;
    Result<StepMetrics> metrics = metrics_from_json(*json, "metrics");
    if (!metrics.ok()) continue;
    if (metrics->step <= last_step()) news.steps_begin_anew = true;
    take(*std::move(metrics));
    ++news.steps;
  }
}

void RunLines::read_events(NewLines& news) {
  const LineFollower::NewLines lines = event_lines_.poll();
  news.has_more = lines.has_more;
  if (lines.begins_anew) {
    news.events_begin_anew = true;
    events_.clear();
    totals_.forget_events();
    launch_step_.reset();
  }
  for (const std::string& line : lines.lines) {
    const Result<Json> json = parse_json(line, "events");
    if (!json.ok()) continue;
    Result<RunEvent> event = run_event_from_json(*json, "events");
    if (!event.ok()) continue;
    take(*std::move(event));
    ++news.events;
  }
}

void RunLines::take(StepMetrics metrics) {
  reported_step_ = std::max(reported_step_, metrics.step);
  history_.add(metrics);
  totals_.add(metrics);
  recent_.add(std::move(metrics));
}

void RunLines::take(RunEvent event) {
  if (event.kind == RunEventKind::kCheckpoint) recent_.add_save(event.step, event.time_s);
  if (begins_launch(event.kind)) {
    recent_.add_launch(event.time_s);
    launch_step_ = reported_step_ = event.step;
  }
  if (event.kind == RunEventKind::kEnded) launch_step_.reset();
  reported_step_ = std::max(reported_step_, event.step);
  totals_.add(event);
  events_.push_back(std::move(event));
  if (events_.size() > kEventsMax) events_.pop_front();
}

void RunLines::update_progress(const NewLines& news) {
  if (news.steps_begin_anew || news.events_begin_anew) has_caught_up_ = false;
  const ReadingProgress progress{metrics_lines_.read_bytes() + event_lines_.read_bytes(),
                                 metrics_lines_.file_bytes() + event_lines_.file_bytes()};
  const bool is_begun = reading_ || !has_caught_up_;
  has_caught_up_ = has_caught_up_ || !news.has_more;
  const bool is_behind =
      news.has_more && (is_begun || progress.bytes - progress.read_bytes > kBehindBytes);
  reading_ = is_behind ? std::optional(progress) : std::nullopt;
}

bool RunLines::lacks_metrics() const {
  return !has_metrics() && launch_step_ && reported_step_ > *launch_step_;
}

double RunLines::written_at_s() const {
  return std::max(metrics_lines_.written_at_s(), event_lines_.written_at_s());
}

std::int64_t RunLines::last_step() const {
  return recent_.last() == nullptr ? 0 : recent_.last()->step;
}

}  // namespace motley
