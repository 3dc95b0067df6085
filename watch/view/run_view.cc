#include "watch/view/run_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/json.h"
#include "checkpoint/lock/launch_record.h"
#include "watch/view/json_number.h"
#include "watch/view/run_place.h"

namespace motley {
namespace {

// Of a run of 4,096 ranks.
constexpr std::size_t kLineBytesMax = std::size_t{4} << 20;
constexpr double kLookForLauncher_s = 1;
// Of a file in one poll; the next one goes on with what is left.
constexpr int kPiecesMax = 64;

Json spans_to_json(const TracedStep* traced) {
  if (traced == nullptr) return nullptr;
  std::vector<TraceSpan> spans = traced->spans;
  if (spans.size() > RunView::kSpansMax) {
    const auto end = spans.begin() + static_cast<std::ptrdiff_t>(RunView::kSpansMax);
    std::nth_element(spans.begin(), end, spans.end(), [](const TraceSpan& a, const TraceSpan& b) {
      return a.duration_s > b.duration_s;
    });
    spans.erase(end, spans.end());
  }
  std::ranges::sort(spans, {}, [](const TraceSpan& s) { return std::pair(s.rank, s.start_s); });
  Json list = Json::array();
  for (const TraceSpan& span : spans) {
    list.push_back({{"rank", span.rank.value},
                    {"lane", span.lane},
                    {"name", span.name},
                    {"start_s", number_or_null(span.start_s)},
                    {"duration_s", number_or_null(span.duration_s)}});
  }
  return {{"step", traced->step}, {"spans", std::move(list)}};
}

// Whether the text of that phase may change while it lasts, and not by every poll.
bool tells_more(RunPhase phase) {
  return phase == RunPhase::kRestarting || phase == RunPhase::kPreparing;
}

bool begins_launch(RunEventKind kind) {
  return kind == RunEventKind::kStarted || kind == RunEventKind::kResumed ||
         kind == RunEventKind::kRestarted;
}

}  // namespace

Result<RunView> RunView::open(const std::filesystem::path& run, double now_s) {
  MOTLEY_TRY(check_holds_run(RunFolder(run)));
  RunView view(run);
  while (view.poll(now_s).has_more) {
  }
  return view;
}

RunView::RunView(const std::filesystem::path& run)
    : folder_(run),
      files_(folder_),
      measured_(folder_.trace_path()),
      predicted_(folder_.predicted_trace_path()),
      metrics_lines_(folder_.metrics_path(), kLineBytesMax),
      event_lines_(folder_.events_path(), kLineBytesMax) {}

Result<void> RunView::readable() const {
  return check_holds_run(folder_);
}

RunView::Changes RunView::poll(double now_s) {
  Changes changes;
  if (files_.poll()) {
    changes.description = true;
    layout_.reset();
    if (files_.plan()) layout_ = layout_of(*files_.plan(), files_.prediction());
  }
  const bool is_measured = measured_.poll();
  const bool is_predicted = predicted_.poll();
  changes.timeline = is_measured || is_predicted;
  read_events(changes);
  read_metrics(changes);
  look_at_state(now_s, changes);
  changes.state = changes.state || changes.steps > 0 || changes.events > 0 || changes.description;
  return changes;
}

void RunView::read_metrics(Changes& changes) {
  bool has_more = true;
  for (int pieces = 0; has_more && pieces < kPiecesMax; ++pieces) {
    const LineFollower::News news = metrics_lines_.poll();
    has_more = news.has_more;
    if (news.begins_anew) {
      changes.begins_anew = true;
      changes.state = true;
      history_.clear();
      recent_.clear();
    }
    for (const std::string& line : news.lines) {
      const Result<Json> json = parse_json(line, "metrics");
      if (!json.ok()) continue;
      Result<StepMetrics> metrics = metrics_from_json(*json, "metrics");
      if (!metrics.ok()) continue;
      if (metrics->step <= last_step()) changes.begins_anew = true;
      history_.add(*metrics);
      totals_.add(*metrics);
      recent_.add(*std::move(metrics));
      ++changes.steps;
    }
  }
  changes.has_more = changes.has_more || has_more;
}

void RunView::read_events(Changes& changes) {
  bool has_more = true;
  for (int pieces = 0; has_more && pieces < kPiecesMax; ++pieces) {
    const LineFollower::News news = event_lines_.poll();
    has_more = news.has_more;
    if (news.begins_anew) {
      events_.clear();
      totals_.forget_events();
      changes.state = true;
    }
    for (const std::string& line : news.lines) {
      const Result<Json> json = parse_json(line, "events");
      if (!json.ok()) continue;
      Result<RunEvent> event = run_event_from_json(*json, "events");
      if (!event.ok()) continue;
      if (event->kind == RunEventKind::kCheckpoint) recent_.add_save(event->step, event->time_s);
      if (begins_launch(event->kind)) recent_.add_launch(event->time_s);
      totals_.add(*event);
      events_.push_back(*std::move(event));
      if (events_.size() > kEventsMax) events_.pop_front();
      ++changes.events;
    }
  }
  changes.has_more = changes.has_more || has_more;
}

void RunView::look_at_state(double now_s, Changes& changes) {
  if (std::abs(now_s - looked_at_s_) >= kLookForLauncher_s || changes.description) {
    const auto launch = launch_under_way(folder_.dir());
    std::string launcher = launch ? describe_launch(*launch) : "";
    if (launcher != launcher_) launcher_since_s_ = now_s;
    launcher_ = std::move(launcher);
    looked_at_s_ = now_s;
  }
  const double step_s = recent_.step_s();
  // What a launcher before this one has told says nothing of this one, which may measure and plan.
  const double told_at_s =
      std::max({metrics_lines_.written_at_s(), event_lines_.written_at_s(), launcher_since_s_});
  const Result<void> found = readable();
  RunState state =
      run_state_of({.unreadable = found.ok() ? "" : found.error().what + ": " + found.error().cause,
                    .launcher = launcher_,
                    .quiet_s = now_s - told_at_s,
                    .step_s = std::isfinite(step_s) ? step_s : 0,
                    .last_step = last_step(),
                    .steps = files_.config() ? files_.config()->train.steps : 0,
                    .is_planned = files_.plan().has_value(),
                    .report = files_.report(),
                    .goes_on = said_to_go_on(events_, now_s)});
  const bool is_same = state.phase == state_.phase && state.status == state_.status &&
                       (!tells_more(state.phase) || state.text == state_.text);
  changes.description = changes.description || !is_same;
  state_ = std::move(state);
}

std::string RunView::name() const {
  const std::filesystem::path path = folder_.dir().lexically_normal();
  return readable_text((path.has_filename() ? path : path.parent_path()).filename().string());
}

std::int64_t RunView::last_step() const {
  return recent_.last() == nullptr ? 0 : recent_.last()->step;
}

Json RunView::description() const {
  const auto& config = files_.config();
  Json json = {{"run",
                {{"name", name()},
                 {"folder", readable_text(folder_.dir().string())},
                 {"model", config ? Json(model_text(config->model)) : Json(nullptr)},
                 {"steps", config ? Json(config->train.steps) : Json(nullptr)},
                 {"state", run_phase_word(state_.phase)},
                 {"status", state_.status ? Json(*state_.status) : Json(nullptr)},
                 {"text", state_.text},
                 {"virtual", is_rehearsal()}}}};
  if (layout_) {
    json.update(layout_to_json(*files_.plan(), *layout_));
  } else {
    for (const char* list : {"machines", "ranks", "links"}) json[list] = Json::array();
    json["plan"] = nullptr;
  }
  return json;
}

JudgedRun RunView::judged() const {
  JudgedRun run;
  run.steps = recent_.steps();
  run.paces = recent_.paces();
  if (!layout_) return run;
  const std::size_t ranks = layout_->ranks.size();
  const bool is_of_plan =
      !run.steps.empty() &&
      (run.steps.back().ranks.size() == ranks ||
       (run.steps.back().ranks.empty() && run.steps.back().wait_s.size() == ranks));
  // A new plan was written, and no step of it is done yet.
  if (!is_of_plan) return run;
  run.ranks = layout_->ranks;
  run.predicted_step_s = files_.plan()->predicted_step_s;
  for (const LayoutLink& link : layout_->links) {
    run.links.push_back({link.from, link.to, link.bandwidth_bytes_per_s});
  }
  return run;
}

RunVerdict RunView::verdict() const {
  const auto text_and = [&](const std::string& lesson) {
    return lesson.empty() ? state_.text : state_.text + "; " + lesson;
  };
  switch (state_.phase) {
    case RunPhase::kPreparing:
      return {VerdictLevel::kGood, state_.text, ""};
    case RunPhase::kTraining:
      break;
    case RunPhase::kRestarting:
      return {VerdictLevel::kWatch, state_.text, ""};
    case RunPhase::kEnded:
      return {VerdictLevel::kGood, text_and(lesson_of(judged())), ""};
    case RunPhase::kStopped:
      return {VerdictLevel::kGood, text_and(lesson_of(judged())),
              "motley train … --resume goes on"};
    case RunPhase::kFailed:
      return {VerdictLevel::kBad, state_.text, "motley train … --resume goes on"};
    case RunPhase::kSilent:
      return {VerdictLevel::kBad, state_.text,
              readable().ok() ? "look into log/motley.log; --resume goes on" : ""};
  }
  return judge(judged());
}

bool RunView::is_rehearsal() const {
  return files_.plan() && is_virtual(*files_.plan());
}

double RunView::eta_s() const {
  if (state_.phase != RunPhase::kTraining || !files_.config()) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  const std::int64_t left = files_.config()->train.steps - last_step();
  return recent_.pace_s() * static_cast<double>(std::max<std::int64_t>(left, 0));
}

Json RunView::state() const {
  const StepMetrics* const last = recent_.last();
  const RunVerdict verdict = this->verdict();
  const double predicted_s = last == nullptr ? 0 : last->predicted_step_s;
  return {{"step", last_step()},
          {"steps", files_.config() ? Json(files_.config()->train.steps) : Json(nullptr)},
          {"virtual", is_rehearsal()},
          {"loss", last == nullptr ? Json(nullptr) : number_or_null(last->loss)},
          {"step_s", number_or_null(recent_.step_s())},
          {"predicted_step_s", predicted_s > 0 ? number_or_null(predicted_s) : Json(nullptr)},
          {"tokens_per_s", number_or_null(recent_.tokens_per_s())},
          {"eta_s", number_or_null(eta_s())},
          {"verdict",
           {{"level", verdict_word(verdict.level)},
            {"text", verdict.text},
            {"advice", verdict.advice.empty() ? Json(nullptr) : Json(verdict.advice)}}},
          {"ranks", recent_.ranks_to_json()},
          {"links", recent_.links_to_json()},
          {"losses", recent_.losses_to_json()}};
}

Json RunView::history(std::size_t points, std::int64_t after) const {
  Json json = history_.columns(std::clamp(points, History::kPointsMin, History::kRowsMax), after);
  const StepMetrics* const last = recent_.last();
  const double predicted_s = last == nullptr ? 0 : last->predicted_step_s;
  json["predicted_step_s"] = predicted_s > 0 ? number_or_null(predicted_s) : Json(nullptr);
  return json;
}

Json RunView::events(std::size_t count) const {
  Json list = Json::array();
  const std::size_t first = events_.size() - std::min(count, events_.size());
  for (std::size_t at = first; at < events_.size(); ++at) {
    list.push_back(run_event_to_json(events_[at]));
  }
  return list;
}

Json RunView::timeline() {
  return {{"measured", spans_to_json(measured_.step())},
          {"simulated", spans_to_json(predicted_.step())}};
}

}  // namespace motley
