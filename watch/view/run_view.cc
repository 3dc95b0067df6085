#include "watch/view/run_view.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/clock.h"
#include "base/json.h"
#include "base/system/files.h"
#include "checkpoint/lock/launch_record.h"
#include "plan/rank_names.h"
#include "run_config/evaluation_rules.h"
#include "watch/view/holds_run.h"
#include "watch/view/json_number.h"

namespace motley {
namespace {

constexpr double kLookForLauncher_s = 1;

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

// False if the file system does not report free space.
bool is_disk_full(const std::filesystem::path& folder) {
  constexpr std::uint64_t kFull_bytes = std::uint64_t{64} << 10;
  return free_disk_bytes(folder).value_or(kFull_bytes) < kFull_bytes;
}

// Whether the text may change during this phase. It does not change with every poll.
bool text_may_change(RunPhase phase) {
  return phase == RunPhase::kRestarting || phase == RunPhase::kPreparing;
}

}  // namespace

Result<RunView> RunView::open(const std::filesystem::path& run, double now_s) {
  MOTLEY_ASSIGN(RunView view, begin(run, now_s));
  while (view.poll(now_s).has_more) {
  }
  return view;
}

Result<RunView> RunView::begin(const std::filesystem::path& run, double now_s) {
  MOTLEY_TRY(check_holds_run(RunFolder(run)));
  RunView view(run);
  const Deadline enough = Deadline::after_s(kBegin_s);
  while (view.poll(now_s).has_more && !enough.passed()) {
  }
  return view;
}

RunView::RunView(const std::filesystem::path& run)
    : folder_(run),
      files_(folder_),
      measured_(folder_.trace_path()),
      predicted_(folder_.predicted_trace_path()),
      lines_(folder_) {}

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
  read_lines(changes);
  observe_state(now_s, changes);
  changes.state = changes.state || changes.description;
  return changes;
}

void RunView::read_lines(Changes& changes) {
  const bool was_reading = reading().has_value();
  const RunLines::NewLines news = lines_.poll();
  changes.begins_anew = news.steps_begin_anew;
  changes.steps = news.steps;
  changes.events = news.events;
  changes.has_more = news.has_more;
  changes.state = news.steps_begin_anew || news.events_begin_anew || news.steps > 0 ||
                  news.events > 0 || was_reading || reading().has_value();
}

void RunView::observe_state(double now_s, Changes& changes) {
  if (std::abs(now_s - looked_at_s_) >= kLookForLauncher_s || changes.description) {
    const auto launch = active_launch(folder_.dir());
    std::string launcher = launch ? describe_launch(*launch) : "";
    if (launcher != launcher_) launcher_since_s_ = now_s;
    launcher_ = std::move(launcher);
    looked_at_s_ = now_s;
  }
  observe_folder(now_s);
  const double step_s = recent().step_s();
  // The files of a previous launcher say nothing about this one, which may be profiling and
  // planning.
  const double active_at_s = std::max(lines_.written_at_s(), launcher_since_s_);
  const Result<void> found = readable();
  RunState state =
      run_state_of({.unreadable = found.ok() ? "" : found.error().what + ": " + found.error().cause,
                    .launcher = launcher_,
                    .quiet_s = now_s - active_at_s,
                    .step_s = std::isfinite(step_s) ? step_s : 0,
                    .last_step = last_step(),
                    .steps = files_.config() ? files_.config()->train.steps : 0,
                    .is_planned = files_.plan().has_value(),
                    .lacks_metrics = folder_observations_.metrics_gone_since_s.has_value(),
                    .reported_end = files_.reported_end(),
                    .pending_restart = pending_restart_of(lines_.events(), now_s)});
  const bool is_same = state.phase == state_.phase && state.status == state_.status &&
                       (!text_may_change(state.phase) || state.text == state_.text);
  changes.description = changes.description || !is_same;
  state_ = std::move(state);
}

std::string RunView::name() const {
  const std::filesystem::path path = folder_.dir().lexically_normal();
  return readable_text((path.has_filename() ? path : path.parent_path()).filename().string());
}

// Only a live run writes here, so only then are these conditions errors.
void RunView::observe_folder(double now_s) {
  const auto see = [&](std::optional<double>& since_s, bool is_so) {
    if (!is_so) {
      since_s.reset();
    } else if (!since_s) {
      since_s = now_s;
    }
  };
  const bool is_at_work = !launcher_.empty();
  see(folder_observations_.metrics_gone_since_s, is_at_work && lines_.lacks_metrics());
  see(folder_observations_.disk_full_since_s, is_at_work && is_disk_full(folder_.dir()));
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
                 {"virtual", !computes()}}}};
  if (layout_) {
    json.update(layout_to_json(*files_.plan(), *layout_));
  } else {
    for (const char* list : {"machines", "ranks", "links"}) json[list] = Json::array();
    json["plan"] = nullptr;
  }
  return json;
}

AssessedRun RunView::assessed() const {
  AssessedRun run;
  run.steps = recent().steps();
  run.intervals = recent().intervals();
  if (!layout_) return run;
  const std::size_t ranks = layout_->ranks.size();
  const bool is_of_plan =
      !run.steps.empty() &&
      (run.steps.back().ranks.size() == ranks ||
       (run.steps.back().ranks.empty() && run.steps.back().wait_s.size() == ranks));
  // A new plan was written, and none of its steps is done yet.
  if (!is_of_plan) return run;
  run.ranks = layout_->ranks;
  run.predicted_step_s = files_.plan()->predicted_step_s;
  for (const LayoutLink& link : layout_->links) {
    run.links.push_back({link.from, link.to, link.bandwidth_bytes_per_s});
  }
  return run;
}

RunHealth RunView::health() const {
  if (reading()) return {HealthLevel::kGood, reading_text(*reading()), ""};
  const auto text_and = [&](const std::string& retrospective) {
    return retrospective.empty() ? state_.text : state_.text + "; " + retrospective;
  };
  switch (state_.phase) {
    case RunPhase::kPreparing:
      return with_file_problems({HealthLevel::kGood, state_.text, ""});
    case RunPhase::kTraining:
      break;
    case RunPhase::kRestarting:
      return {HealthLevel::kWatch, state_.text, ""};
    case RunPhase::kEnded:
      return with_best(
          with_file_problems({HealthLevel::kGood, text_and(retrospective_of(assessed())), ""}));
    case RunPhase::kStopped:
      return with_best(
          with_file_problems({HealthLevel::kGood, text_and(retrospective_of(assessed())),
                              "motley train … --resume continues the run"}));
    case RunPhase::kFailed:
      return {HealthLevel::kBad, state_.text, "motley train … --resume continues the run"};
    case RunPhase::kSilent: {
      const RunHealth silent{
          HealthLevel::kBad, state_.text,
          readable().ok() ? "see log/motley.log; --resume continues the run" : ""};
      // With an active launcher, file errors may explain the silence.
      return launcher_.empty() ? silent : with_file_problems(silent);
    }
  }
  return with_best(with_file_problems(assess(assessed())));
}

RunHealth RunView::with_best(RunHealth health) const {
  const auto& config = files_.config();
  const auto& best = totals().sums().best;
  if (config && compares_evaluations(*config) && best) health.text += "; best: " + best_text(*best);
  return health;
}

RunHealth RunView::with_file_problems(RunHealth health) const {
  const auto last = lines_.has_metrics() ? std::optional(last_step()) : std::nullopt;
  return with_problems(std::move(health),
                       file_problems_of(lines_.events(), last, folder_observations_));
}

bool RunView::computes() const {
  return !files_.plan() || capabilities_of(*files_.plan()).computes;
}

double RunView::eta_s() const {
  if (state_.phase != RunPhase::kTraining || !files_.config()) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  const std::int64_t left = files_.config()->train.steps - last_step();
  return recent().mean_interval_s() * static_cast<double>(std::max<std::int64_t>(left, 0));
}

Json RunView::evaluation() const {
  const std::optional<HeldOutResult>& last = totals().sums().evaluation;
  if (!last) return nullptr;
  const auto optional = [](const std::optional<double>& value) {
    return value ? number_or_null(*value) : Json(nullptr);
  };
  return {{"loss", number_or_null(last->loss)},
          {"perplexity", optional(last->perplexity)},
          {"accuracy", optional(last->accuracy)},
          {"top5_accuracy", optional(last->top5_accuracy)}};
}

Json RunView::state() const {
  const StepMetrics* const last = recent().last();
  const RunHealth health = this->health();
  const double predicted_s = last == nullptr ? 0 : last->predicted_step_s;
  return {{"step", last_step()},
          {"steps", files_.config() ? Json(files_.config()->train.steps) : Json(nullptr)},
          {"virtual", !computes()},
          {"reading", reading()
                          ? Json{{"read_bytes", reading()->read_bytes}, {"bytes", reading()->bytes}}
                          : Json(nullptr)},
          {"loss", last == nullptr ? Json(nullptr) : number_or_null(last->outcome.loss)},
          {"eval", evaluation()},
          {"step_s", number_or_null(recent().step_s())},
          {"predicted_step_s", predicted_s > 0 ? number_or_null(predicted_s) : Json(nullptr)},
          {"tokens_per_s", number_or_null(recent().tokens_per_s())},
          {"eta_s", number_or_null(eta_s())},
          {"verdict",
           {{"level", health_level_name(health.level)},
            {"text", health.text},
            {"advice", health.advice.empty() ? Json(nullptr) : Json(health.advice)}}},
          {"ranks", recent().ranks_to_json()},
          {"links", recent().links_to_json()},
          {"losses", recent().losses_to_json()}};
}

Json RunView::history(std::size_t points, std::int64_t after) const {
  Json json =
      lines_.history().columns(std::clamp(points, History::kPointsMin, History::kRowsMax), after);
  const StepMetrics* const last = recent().last();
  const double predicted_s = last == nullptr ? 0 : last->predicted_step_s;
  json["predicted_step_s"] = predicted_s > 0 ? number_or_null(predicted_s) : Json(nullptr);
  return json;
}

Json RunView::events(std::size_t count) const {
  Json list = Json::array();
  const std::deque<RunEvent>& events = lines_.events();
  const std::size_t first = events.size() - std::min(count, events.size());
  for (std::size_t at = first; at < events.size(); ++at) {
    list.push_back(run_event_to_json(events[at]));
  }
  return list;
}

Json RunView::timeline() {
  const TracedStep* measured = measured_.step();
  // A previous launch may have left the trace of another plan.
  const bool is_of_plan =
      measured == nullptr || !files_.plan() || measured->rank_names == rank_names(*files_.plan());
  return {{"measured", spans_to_json(is_of_plan ? measured : nullptr)},
          {"simulated", spans_to_json(predicted_.step())}};
}

}  // namespace motley
