#include "cli/planning/displayed_run.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <limits>
#include <utility>

#include "base/clock.h"
#include "base/json.h"
#include "base/system/files.h"
#include "base/toml.h"
#include "cli/inputs.h"
#include "cli/planning/planned_cluster.h"
#include "cluster/diagnose/automatic_devices.h"
#include "cluster/launch/workers.h"
#include "cluster/planning/planning_options.h"
#include "cluster/run/run_folder.h"
#include "partitioner/report/calibration.h"
#include "partitioner/report/plan_analysis.h"
#include "plan/cluster/cluster_file.h"
#include "plan/device_kinds.h"
#include "plan/quantity_text.h"
#include "run_config/config_io.h"
#include "watch/view/run_files.h"
#include "watch/view/run_view.h"

namespace motley {
namespace {

// More points would not be visible at that width.
constexpr std::size_t kPointsShown = 1200;
constexpr std::size_t kEventsShown = 100;
// Advice needs several planner runs per machine.
constexpr std::size_t kMachinesAdvised = 8;

double number_or_gap(const Json& value) {
  return value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

std::string text_at(const Json& object, const char* key) {
  const auto member = object.find(key);
  return member != object.end() && member->is_string() ? member->get<std::string>() : "";
}

std::vector<CurvePoint> column(const Json& history, const char* name) {
  std::vector<CurvePoint> points;
  const Json& steps = history.at("step");
  const Json& values = history.at(name);
  for (std::size_t i = 0; i < std::min(steps.size(), values.size()); ++i) {
    points.push_back({number_or_gap(steps[i]), number_or_gap(values[i])});
  }
  return points;
}

RunCurves curves_of(const Json& history) {
  RunCurves shown{.loss = column(history, "loss"),
                  .tokens_per_s = column(history, "tokens_per_s"),
                  .step_s = column(history, "step_s"),
                  .bubble = column(history, "bubble")};
  for (const Json& eval : history.at("eval")) {
    shown.eval_loss.push_back({number_or_gap(eval.at(0)), number_or_gap(eval.at(1))});
  }
  return shown;
}

std::vector<TimeShare> losses_of(const Json& state) {
  std::vector<TimeShare> losses;
  const auto found = state.find("losses");
  if (found == state.end() || !found->is_object()) return losses;
  for (const auto& [key, words] : {std::pair("imbalance", "unequal work"),
                                   {"links_and_filling", "links, filling the pipeline"},
                                   {"codec", "messages and codecs"},
                                   {"optimizer", "the optimizer"}}) {
    const double share = number_or_gap(found->value(key, Json()));
    if (std::isfinite(share)) losses.push_back({words, share});
  }
  return losses;
}

std::string date_text(double unix_s) {
  const auto seconds = static_cast<std::time_t>(unix_s);
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", utc);
}

std::vector<TextRow> events_of(const Json& events) {
  std::vector<TextRow> rows = {{"when", "step", "what"}};
  for (const Json& event : events) {
    const double time_s = number_or_gap(event.value("time", Json()));
    rows.push_back({std::isfinite(time_s) ? date_text(time_s) : "",
                    event.value("step", Json()).dump(), text_at(event, "text")});
  }
  return rows;
}

std::vector<TextRow> facts_of(const Json& description, const Json& state) {
  std::vector<TextRow> rows = {{"run", ""}};
  const Json& run = description.at("run");
  rows.push_back({"model", text_at(run, "model")});
  if (run.value("virtual", false)) rows.push_back({"devices", kVirtualNotice});
  rows.push_back({"state", text_at(run, "text")});
  rows.push_back({"step", fmt::format("{} of {}", state.value("step", Json()).dump(),
                                      state.value("steps", Json()).dump())});
  const auto add = [&](const char* name, const char* key, std::string (*text)(double)) {
    const double value = number_or_gap(state.value(key, Json()));
    if (std::isfinite(value)) rows.push_back({name, text(value)});
  };
  add("loss", "loss", [](double loss) { return fmt::format("{:.4f}", loss); });
  add("a step takes", "step_s", seconds_text);
  add("as predicted", "predicted_step_s", seconds_text);
  add("tokens a second", "tokens_per_s", per_second_text);
  return rows;
}

Result<PlanningInput> planning_input(const RunFolder& folder,
                                     const Plan& plan,
                                     const Arguments& arguments) {
  const std::string path = folder.config_path();
  MOTLEY_ASSIGN(const std::string text, read_file(path, kTomlBytesMax));
  MOTLEY_ASSIGN(const ResolvedConfig resolved, resolve_config(text, path, {}, {}));
  PlanningInput input;
  MOTLEY_ASSIGN(input.model, describe_model(resolved.config.model));
  MOTLEY_ASSIGN(input.profile, read_profile(folder.profile_path()));
  MOTLEY_ASSIGN(input.options, plan_options(resolved.config, input.model, 0));
  if (!arguments.has("cluster")) {
    RunFiles files(folder);
    files.poll();
    const bool is_same = files.plan() && plan_hash(*files.plan()) == plan_hash(plan);
    input.cluster = planned_cluster(plan, is_same ? files.prediction() : std::nullopt);
    return input;
  }
  MOTLEY_ASSIGN(input.cluster, read_cluster(arguments, plan.rank_count(), Mixture::kAllowed));
  settle_by_plan(input.cluster, plan);
  return input;
}

Result<TracedStep> traced_step_in(const std::string& path) {
  constexpr std::uint64_t kTraceBytesMax = 256 << 20;
  MOTLEY_ASSIGN(const std::string text, read_file(path, kTraceBytesMax));
  return last_traced_step(text, path);
}

// Uses the profile as corrected by the run's measurements, if there are any.
Result<AdvisorReport> advice_for(const std::filesystem::path& run, PlanningInput input) {
  if (const auto measured = read_measurement(run); measured.ok()) {
    MOTLEY_ASSIGN(const Calibration calibration, calibrate(input, {*measured}));
    input.profile = calibrated(std::move(input.profile), calibration);
  }
  return advise(input);
}

Result<void> add_plan(const std::filesystem::path& run,
                      const Arguments& arguments,
                      ProgressLine& line,
                      DisplayedRun& shown) {
  const RunFolder folder(run);
  MOTLEY_ASSIGN(const Plan plan, read_named_plan(folder.plan_path()));
  shown.rank_names = rank_names(plan);
  MOTLEY_ASSIGN(const PlanningInput input, planning_input(folder, plan, arguments));
  MOTLEY_ASSIGN(PlanAnalysis analysis, analyse_step(input, plan));
  MOTLEY_ASSIGN(shown.plan, sketch_plan(input, plan, analysis));
  shown.simulated = std::move(analysis.spans);
  if (input.cluster.machines.size() > kMachinesAdvised) {
    shown.not_advised = fmt::format(
        "Not computed for more than {} machines, which takes a while: motley plan CONFIG --learn "
        "{} --advise",
        kMachinesAdvised, run.string());
    return {};
  }
  line.say("trying upgrades");
  auto advised = advice_for(run, input);
  if (advised.ok()) {
    shown.advised = *std::move(advised);
  } else {
    shown.not_advised = "Unknown: " + advised.error().what;
  }
  return {};
}

}  // namespace

Result<TracedStep> read_traced_step(const std::filesystem::path& run) {
  const std::string path = RunFolder(run).trace_path();
  MOTLEY_ASSIGN(const bool exists, path_exists(path));
  if (!exists) {
    return Error{ErrorCode::kConfig,
                 fmt::format("the run in {} recorded no step to draw", run.string()),
                 "the first two steps (warm-up) are not recorded, nor any step with "
                 "run.trace_steps = 0; a lost run has no record",
                 "train 3 steps or more"};
  }
  return traced_step_in(path);
}

Result<DisplayedRun> displayed_run(const std::filesystem::path& run,
                                   const Arguments& arguments,
                                   ProgressLine& line) {
  MOTLEY_ASSIGN(RunView view, RunView::open(run, unix_time_s()));
  const Json description = view.description();
  const Json state = view.state();
  const Json health = state.at("verdict");
  DisplayedRun shown{.name = "Run " + run.string(),
                     .level = text_at(health, "level"),
                     .health = text_at(health, "text"),
                     .advice = text_at(health, "advice"),
                     .facts = facts_of(description, state),
                     .curves = curves_of(view.history(kPointsShown)),
                     .losses = losses_of(state),
                     .events = events_of(view.events(kEventsShown))};
  const double step_s = number_or_gap(state.value("step_s", Json()));
  if (std::isfinite(step_s)) shown.step_s = step_s;
  const double predicted_s = number_or_gap(state.value("predicted_step_s", Json()));
  if (std::isfinite(predicted_s)) shown.curves.predicted_step_s = predicted_s;
  if (auto report = read_named_report(run); report.ok()) shown.report = *std::move(report);
  auto traced = read_traced_step(run);
  if (traced.ok()) {
    shown.traced = *std::move(traced);
  } else {
    shown.not_traced = traced.error().what + ": " + traced.error().cause;
  }
  if (const auto added = add_plan(run, arguments, line, shown); !added.ok()) {
    shown.not_advised = "Unknown: " + added.error().what;
    line.clear();
    fmt::print(stderr, "the page has no plan and no upgrades: {}\n", added.error().what);
  }
  if (shown.traced && !shown.rank_names.empty() && shown.traced->rank_names != shown.rank_names) {
    shown.traced.reset();
    shown.not_traced = "the trace is of an earlier launch with another plan";
  }
  // Prefers the prediction from planning time, if the folder contains it.
  auto predicted = traced_step_in(RunFolder(run).predicted_trace_path());
  if (predicted.ok()) shown.simulated = std::move(predicted->spans);
  return shown;
}

}  // namespace motley
