// motley report: a run's predictions beside its measurements.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <set>
#include <string>

#include "base/json.h"
#include "base/system/files.h"
#include "cluster/process/work_line.h"
#include "cluster/run/run_folder.h"
#include "pictures/pages/run_page.h"
#include "pictures/timeline.h"
#include "tools/command.h"
#include "tools/inputs.h"
#include "tools/output_file.h"
#include "tools/planning/run_to_show.h"
#include "tools/under_way.h"

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
  WorkLine line("reading the run");
  MOTLEY_ASSIGN(const RunToShow shown, run_to_show(arguments.operand(0), arguments, line));
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
  const auto under_way = training_under_way(arguments.operand(0));
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
        "under way: {}\nits report comes when it ends; this is of the session before it:\n\n",
        under_way->text());
  }
  fmt::print("{}", report_text(report));
  // A simulated run measures neither the devices nor the links of its plan.
  if (is_virtual(report)) return {};
  if (waits_beyond_plan(report)) {
    fmt::print(
        "\nsteps take longer than planned in waiting, not in computing: `motley probe --cluster "
        "FILE --output links.json` measures the links, `motley plan CONFIG --links links.json` "
        "plans by that\n");
    return {};
  }
  fmt::print("\nmotley plan CONFIG --learn {} makes a plan from what was measured\n",
             arguments.operand(0));
  return {};
}

}  // namespace

Command report_command() {
  CommandSpec spec{
      "report",
      "compare a run with what its plan predicted",
      {"RUN"},
      {{"svg", "FILE", "draw the last traced step as a picture that any browser shows"},
       {"html", "FILE", "write all of the run as a page that is one file, to keep or to send"},
       cluster_option(),
       links_option(),
       json_option()},
      "RUN is a run's folder. At its end, however it ends, a run whose ranks were started\n"
      "writes report.json, of the session since it was started or last resumed; while one\n"
      "is under way it says so, and how far that is, before the report of the session\n"
      "before. It holds the predicted and the measured time of a step, and for each\n"
      "stage its computing, waiting, peak memory and bytes sent. `motley plan --learn\n"
      "RUN` corrects the next plan by it.\n\n"
      "The page of --html has no scripts and fetches nothing. It shows the loss and the\n"
      "speed, predicted beside measured, a step as measured and as simulated, where time\n"
      "went, the plan, and what would help most. It is made of any run, also of one that is\n"
      "under way or was lost. With --cluster its links are those of that file, or of\n"
      "--links, else as the plan counts on them.\n\n"
      "Examples\n"
      "  motley report runs/gpt\n"
      "  motley report runs/gpt --html gpt.html\n"};
  return {spec, report};
}

}  // namespace motley
