// motley watch: how a run goes, while it trains and afterwards.
#include <cstdint>
#include <cstdlib>

#include "base/result.h"
#include "tools/command.h"
#include "watch/browser/browser_watch.h"
#include "watch/terminal/terminal_watch.h"

namespace motley {
namespace {

Result<void> watch(const Arguments& arguments) {
  if (!arguments.has("tui")) {
    std::int64_t port = 0;
    if (arguments.has("port")) {
      MOTLEY_ASSIGN(port, integer_value(arguments, "port", 1, 65535));
    }
    return watch_in_browser(arguments.operand(0), static_cast<std::uint16_t>(port));
  }
  if (arguments.has("port")) {
    return Error{ErrorCode::kUsage, "--port and --tui do not go together",
                 "a terminal needs no port", "leave one of them out"};
  }
  return watch_in_terminal(arguments.operand(0),
                           {.term = std::getenv("TERM"), .no_color = std::getenv("NO_COLOR")});
}

}  // namespace

Command watch_command() {
  CommandSpec spec{
      "watch",
      "see how a run goes: who is slow, now, and why",
      {"RUN"},
      {{"port", "N", "of the page on this machine; without it, one that is free"},
       {"tui", "", "on this terminal, redrawn as the run goes on; q or Ctrl-C leaves"}},
      "RUN is a run's folder, of a training that is under way or of one that has ended.\n"
      "It is only read: a training is never held up by who looks, and nothing ends with\n"
      "the watching. The first line says whether the run goes as planned, or which\n"
      "machine or link holds it up, since at least some steps, and what can be done.\n\n"
      "Without --tui it serves a page to a browser on this machine, to nobody else, and\n"
      "prints its address, which has a token in it: whoever has that may look. The page\n"
      "shows curves, machines and links, a step beside its plan, time, memory and events,\n"
      "live. Ctrl-C ends it. To look from another machine, bring the port there by\n"
      "ssh -L PORT:127.0.0.1:PORT MACHINE; docs/formats/watch.md says what it answers.\n\n"
      "With --tui, where standard output is no terminal, a line is printed every few seconds, and\n"
      "each event, until the run ends. NO_COLOR is obeyed.\n\n"
      "Examples\n"
      "  motley watch runs/gpt\n"
      "  motley watch runs/gpt --tui\n"};
  return {spec, watch};
}

}  // namespace motley
