// motley report: what was predicted of a run beside what it measured.
#include <fmt/format.h>

#include <cstdio>

#include "base/json.h"
#include "cluster/run/run_folder.h"
#include "tools/command.h"
#include "tools/inputs.h"

namespace motley {
namespace {

Result<void> report(const Arguments& arguments) {
  MOTLEY_ASSIGN(const RunReport report, read_named_report(arguments.operand(0)));
  if (arguments.has("json")) {
    fmt::print("{}\n", report_to_json(report).dump(2));
  } else {
    fmt::print("{}\nmotley plan CONFIG --learn {} makes a plan from what was measured\n",
               report_text(report), arguments.operand(0));
  }
  return {};
}

}  // namespace

Command report_command() {
  CommandSpec spec{
      "report",
      "compare a run with what its plan predicted",
      {"RUN"},
      {json_option()},
      "RUN is a run's folder. At its end a run writes report.json: the predicted and\n"
      "the measured time of a step, and for each stage its computing, waiting, peak\n"
      "memory and bytes sent. `motley plan --learn RUN` corrects the next plan by it.\n\n"
      "Example\n"
      "  motley report runs/quickstart\n"};
  return {spec, report};
}

}  // namespace motley
