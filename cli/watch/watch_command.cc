// motley watch: monitors a run during training and afterwards.
#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>

#include "base/result.h"
#include "base/system/program_path.h"
#include "cli/command.h"
#include "watch/browser/browser_watch.h"
#include "watch/browser/elsewhere.h"
#include "watch/terminal/terminal_watch.h"

namespace motley {
namespace {

Result<void> serve(const Arguments& arguments) {
  BrowserWatchOptions options;
  options.for_metrics = arguments.has("metrics");
  if (arguments.has("port")) {
    MOTLEY_ASSIGN(const std::int64_t port, integer_value(arguments, "port", 1, 65535));
    options.port = static_cast<std::uint16_t>(port);
  }
  if (arguments.has("token-file")) options.token_file = arguments.value("token-file");
  options.until_eof = arguments.has("until-eof");
  if (const auto elsewhere = run_elsewhere(arguments.operand(0))) {
    return watch_elsewhere(*elsewhere, options, program_path());
  }
  return watch_in_browser(arguments.operand(0), options);
}

Result<void> watch(const Arguments& arguments) {
  if (!arguments.has("tui")) return serve(arguments);
  for (const char* served : {"port", "metrics", "token-file", "until-eof"}) {
    if (!arguments.has(served)) continue;
    return Error{ErrorCode::kUsage, fmt::format("--{} and --tui exclude each other", served),
                 "--tui starts no server", "leave one of them out"};
  }
  const char* const no_color = std::getenv("NO_COLOR");
  if (const auto elsewhere = run_elsewhere(arguments.operand(0))) {
    return become_screen_elsewhere(*elsewhere, program_path(), no_color);
  }
  return watch_in_terminal(arguments.operand(0),
                           {.term = std::getenv("TERM"), .no_color = no_color});
}

}  // namespace

Command watch_command() {
  CommandSpec spec{
      "watch",
      "monitor a run: progress, bottlenecks and their causes",
      {"RUN"},
      {{"port", "N", "port of the page on this machine (default: a free one)"},
       {"metrics", "", "print the address of its metrics, and the configuration for Prometheus"},
       {"token-file", "FILE",
        "store the token there, so that it does not change; created if absent"},
       {"until-eof", "", "also end at the end of standard input, for a start by ssh"},
       {"tui", "", "show the run on this terminal, updated live; q or Ctrl-C quits"}},
      "RUN is a run's folder, of a training in progress or of one that has ended, or\n"
      "HOST:FOLDER on another machine with ssh and Motley.\n"
      "The run is only read: monitoring never delays a training, and ending it does not affect\n"
      "the run. The first line shows whether the run performs as planned, or which machine or\n"
      "link slows it down, since which step, and what can be done.\n\n"
      "Without --tui it serves a page to browsers on this machine only, and prints its address\n"
      "with a token, which grants access. The page shows curves, machines and links, a step and\n"
      "its plan, time, memory and events, live. Ctrl-C ends it. docs/watching.md describes\n"
      "access from other machines, docs/formats/watch.md the answers of the server.\n\n"
      "Under /metrics the same server has the run's metrics as OpenMetrics, or in the text\n"
      "format of Prometheus. --metrics prints that address, and on standard error what to add to\n"
      "prometheus.yml. With --port and --token-file the address does not change.\n\n"
      "With --tui, if standard output is not a terminal, a line is printed every few seconds, and\n"
      "each event, until the run ends. NO_COLOR is respected.\n\n"
      "Examples\n"
      "  motley watch runs/gpt\n"
      "  motley watch runs/gpt --tui\n"
      "  motley watch anna@desktop:runs/gpt\n"
      "  motley watch runs/gpt --metrics --port 9464 --token-file motley.token\n"};
  return {spec, watch};
}

}  // namespace motley
