// motley watch: how a run goes, while it trains and afterwards.
#include <cstdlib>

#include "tools/command.h"
#include "watch/terminal/terminal_watch.h"

namespace motley {
namespace {

Result<void> watch(const Arguments& arguments) {
  return watch_in_terminal(arguments.operand(0),
                           {.term = std::getenv("TERM"), .no_color = std::getenv("NO_COLOR")});
}

}  // namespace

Command watch_command() {
  CommandSpec spec{
      "watch",
      "see how a run goes: who is slow, now, and why",
      {"RUN"},
      {{"tui", "", "on this terminal, redrawn as the run goes on; q or Ctrl-C leaves"}},
      "RUN is a run's folder, of a training that is under way or of one that has ended.\n"
      "It is only read: a training is never held up by who looks, and nothing ends with\n"
      "the watching. The first line says whether the run goes as planned, or which\n"
      "machine or link holds it up, since at least some steps, and what can be done.\n\n"
      "Where standard output is no terminal, a line is printed every few seconds, and\n"
      "each event, until the run ends. NO_COLOR is obeyed.\n\n"
      "Example\n"
      "  motley watch runs/gpt --tui\n"};
  return {spec, watch};
}

}  // namespace motley
