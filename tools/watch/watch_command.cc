// motley watch: monitors a run during training and afterwards.
#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>

#include "base/result.h"
#include "base/system/program_path.h"
#include "tools/command.h"
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
    return Error{ErrorCode::kUsage, fmt::format("--{} and --tui do not go together", served),
                 "a terminal is served nothing", "leave one of them out"};
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
      "see how a run goes: who is slow, now, and why",
      {"RUN"},
      {{"port", "N", "of the page on this machine; without it, one that is free"},
       {"metrics", "", "print the address of its metrics, and how Prometheus scrapes them"},
       {"token-file", "FILE", "keep the token there, so that it stays the same; made if absent"},
       {"until-eof", "", "end with standard input too: for who starts it by ssh"},
       {"tui", "", "on this terminal, redrawn as the run goes on; q or Ctrl-C leaves"}},
      "RUN is a run's folder, of a training that is under way or of one that has ended, or\n"
      "HOST:FOLDER, one on another machine that ssh reaches and that has Motley.\n"
      "It is only read: a training is never held up by who looks, and nothing ends with\n"
      "the watching. The first line says whether the run goes as planned, or which\n"
      "machine or link holds it up, since at least some steps, and what can be done.\n\n"
      "Without --tui it serves a page to a browser on this machine, to nobody else, and\n"
      "prints its address, which has a token in it: whoever has that may look. The page\n"
      "shows curves, machines and links, a step beside its plan, time, memory and events,\n"
      "live. Ctrl-C ends it. docs/watching.md has ways to look from other machines,\n"
      "docs/formats/watch.md what it answers.\n\n"
      "Under /metrics the same server has the run's numbers as OpenMetrics, or as the text of\n"
      "Prometheus. --metrics prints that address, and on standard error what to add to\n"
      "prometheus.yml. With --port and --token-file the address stays the same from start to\n"
      "start.\n\n"
      "With --tui, where standard output is no terminal, a line is printed every few seconds, and\n"
      "each event, until the run ends. NO_COLOR is obeyed.\n\n"
      "Examples\n"
      "  motley watch runs/gpt\n"
      "  motley watch runs/gpt --tui\n"
      "  motley watch anna@desktop:runs/gpt\n"
      "  motley watch runs/gpt --metrics --port 9464 --token-file motley.token\n"};
  return {spec, watch};
}

}  // namespace motley
