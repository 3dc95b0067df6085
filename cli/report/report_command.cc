// motley report: a run's predictions beside its measurements.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <set>
#include <string>

#include "base/json.h"
#include "base/process/progress_line.h"
#include "base/system/files.h"
#include "cli/active_training.h"
#include "cli/command.h"
#include "cli/inputs.h"
#include "cli/output_file.h"
#include "cli/report/displayed_run.h"
#include "figures/pages/run_page.h"
#include "figures/timeline.h"
#include "record/report_text.h"
#include "record/run_folder.h"

namespace motley {
namespace {

// The run's last traced step, drawn as `motley simulate --svg` draws the predicted one.
Result<void> draw_traced_step(const std::string& run, const std::string& picture) {
  MOTLEY_ASSIGN(const TracedStep traced, read_traced_step(run));
  const std::string title = fmt::format("{}: step {}, as measured", run, traced.step);
  return write_output(
      picture, svg_file(title, {timeline(traced.spans, traced.rank_names, {.title = title})}));
}

// Also works for a live run, or one that was lost before it wrote its report.
Result<void> write_page(const Arguments& arguments) {
  ProgressLine line("reading the run");
  MOTLEY_ASSIGN(const DisplayedRun shown, displayed_run(arguments.operand(0), arguments, line));
  line.clear();
  MOTLEY_TRY(write_output(arguments.value("html"), run_page(shown)));
  fmt::print(stderr, "wrote {}\n", arguments.value("html"));
  return {};
}

// Whether steps take much longer than predicted while no rank computes correspondingly longer.
// Learning corrects the times of devices, not of links.
bool waits_beyond_plan(const RunReport& report) {
  constexpr double kMuch = 0.2;
  const auto over_s = [](const PredictedAndMeasured& time) {
    return time.measured - time.predicted;
  };
  const double step_over_s = over_s(report.step_s);
  if (report.step_s.predicted <= 0 || step_over_s < kMuch * report.step_s.predicted) return false;
  const std::set<std::string> machines = [&] {
    std::set<std::string> names;
    for (const RankReport& rank : report.ranks) names.insert(rank.machine);
    return names;
  }();
  return machines.size() > 1 && std::ranges::none_of(report.ranks, [&](const RankReport& rank) {
           return over_s(rank.compute_s) > step_over_s / 2;
         });
}

Result<void> report(const Arguments& arguments) {
  MOTLEY_TRY(check_outputs(arguments, {"svg", "html"}));
  if (arguments.has("html")) {
    MOTLEY_TRY(write_page(arguments));
    MOTLEY_ASSIGN(const bool exists, path_exists(RunFolder(arguments.operand(0)).report_path()));
    // If only the page was requested, it is done.
    if (!exists && !arguments.has("svg") && !arguments.has("json")) return {};
  }
  MOTLEY_ASSIGN(const RunReport report, read_named_report(arguments.operand(0)));
  if (arguments.has("svg")) {
    MOTLEY_TRY(draw_traced_step(arguments.operand(0), arguments.value("svg")));
  }
  if (arguments.has("svg")) fmt::print(stderr, "wrote {}\n", arguments.value("svg"));
  const auto under_way = active_training(arguments.operand(0));
  if (arguments.has("json")) {
    Json json = report_to_json(report);
    if (under_way) {
      json["under_way"] = {{"launcher", under_way->launcher},
                           {"last_step", under_way->last_step},
                           {"steps", under_way->steps}};
    }
    fmt::print("{}\n", json.dump(2));
    return {};
  }
  if (under_way) {
    fmt::print(
        "in progress: {}\n"
        "its report is written at its end; this is the report of the session before:\n\n",
        under_way->text());
  }
  fmt::print("{}", report_text(report));
  // Otherwise the run measured neither the devices nor the links of its plan.
  if (!capabilities_of(report).is_measured) return {};
  if (waits_beyond_plan(report)) {
    fmt::print(
        "\n"
        "steps take longer than planned because of waiting, not computing: `motley probe --cluster "
        "FILE --output links.json` measures the links, `motley plan CONFIG --links links.json` "
        "plans with them\n");
    return {};
  }
  fmt::print(
      "\n"
      "motley plan CONFIG --learn {} plans with these measurements\n",
      arguments.operand(0));
  return {};
}

}  // namespace

Command report_command() {
  CommandSpec spec{
      "report",
      "compare a run with the prediction of its plan",
      {"RUN"},
      {{"svg", "FILE", "draw the last traced step as an SVG picture"},
       {"html", "FILE", "write the whole run as a single-file page"},
       cluster_option(),
       links_option(),
       json_option()},
      "RUN is a run's folder. At its end, however it ends, a run with started ranks writes\n"
      "report.json, of the session since its start or last resume. For a run in progress the\n"
      "command shows its progress and the report of the session before. A report has the\n"
      "predicted and the measured time of a step, and for each stage its computing, waiting,\n"
      "peak memory and bytes sent. `motley plan --learn RUN` corrects the next plan by it.\n\n"
      "The page of --html has no scripts and loads nothing. It shows the loss and the speed,\n"
      "predictions and measurements, a measured and a simulated step, the use of time, the\n"
      "plan, and the most useful upgrades. It can be written for any run, including one in\n"
      "progress or lost. With --cluster its links are those of that file, or of --links, else\n"
      "those that the plan assumes.\n\n"
      "Examples\n"
      "  motley report runs/gpt\n"
      "  motley report runs/gpt --html gpt.html\n"};
  return {spec, report};
}

}  // namespace motley
