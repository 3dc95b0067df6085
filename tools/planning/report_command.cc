// motley report: what was predicted of a run beside what it measured.
#include <fmt/format.h>

#include <cstdio>

#include "base/json.h"
#include "base/system/files.h"
#include "cluster/run/run_folder.h"
#include "pictures/timeline.h"
#include "plan/trace_file.h"
#include "tools/command.h"
#include "tools/inputs.h"
#include "tools/under_way.h"

namespace motley {
namespace {

// The last step that the run traced, as `motley simulate --svg` draws the predicted one.
Result<void> draw_traced_step(const std::string& run, const std::string& picture) {
  constexpr std::uint64_t kTraceBytesMax = 256 << 20;
  const RunFolder folder(run);
  const std::string path = folder.trace_path().string();
  MOTLEY_ASSIGN(const bool exists, path_exists(path));
  if (!exists) {
    return Error{ErrorCode::kConfig, fmt::format("the run in {} recorded no step to draw", run),
                 "its first two steps, which warm up, are not recorded, nor is any with "
                 "run.trace_steps = 0; a run that was lost leaves no record",
                 "train 3 steps or more"};
  }
  MOTLEY_ASSIGN(const std::string text, read_file(path, kTraceBytesMax));
  MOTLEY_ASSIGN(const TracedStep traced, last_traced_step(text, path));
  const std::string title = fmt::format("{}: step {}, as measured", run, traced.step);
  return write_file_atomic(
      picture, svg_file(title, {timeline(traced.spans, traced.rank_names, {.title = title})}));
}

Result<void> report(const Arguments& arguments) {
  MOTLEY_TRY(check_outputs(arguments, {"svg"}));
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
  fmt::print("{}\nmotley plan CONFIG --learn {} makes a plan from what was measured\n",
             report_text(report), arguments.operand(0));
  return {};
}

}  // namespace

Command report_command() {
  CommandSpec spec{
      "report",
      "compare a run with what its plan predicted",
      {"RUN"},
      {{"svg", "FILE", "draw the last traced step as a picture that any browser shows"},
       json_option()},
      "RUN is a run's folder. At its end, however it ends, a run writes report.json, of\n"
      "the session since it was started or last resumed; while one is under way it says\n"
      "so, and how far that is, before the report of the session before. It holds the\n"
      "predicted and the measured time of a step, and for each stage its computing,\n"
      "waiting, peak memory and bytes sent. `motley plan --learn RUN` corrects the\n"
      "next plan by it.\n\n"
      "Example\n"
      "  motley report runs/gpt\n"};
  return {spec, report};
}

}  // namespace motley
