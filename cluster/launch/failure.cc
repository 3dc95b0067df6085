#include "cluster/launch/failure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "protocol/last_words.h"

namespace motley {
namespace {

struct Advice {
  std::string cause;
  std::string remedy;
};

// How a training goes on, only the run knows (cluster/run/way_on.h).
std::string and_then(const std::string& remedy, bool trains) {
  if (trains) return remedy;
  return remedy.empty() ? "run the command again" : remedy + "; run the command again";
}

Advice advice_on_signal(int signal, bool trains) {
  if (signal == SIGKILL) {
    return {"somebody killed it, or its machine ran out of memory",
            and_then("look for 'Out of memory' in that machine's 'dmesg'", trains)};
  }
  if (signal == SIGTERM || signal == SIGINT || signal == SIGHUP) {
    return {"it was ended from outside", and_then("", trains)};
  }
  return {"the program crashed", and_then("see the worker's log", trains)};
}

bool has_lapsed(const ProcessExit& exit, const std::vector<std::string>& last_lines) {
  if (exit.signal != 0 || exit.status != static_cast<int>(ErrorCode::kTerminated)) return false;
  return std::ranges::any_of(
      last_lines, [](const std::string& line) { return line.starts_with(kLapsedWords); });
}

Error lapsed(const std::string& name, const Activity& activity, bool trains) {
  return {ErrorCode::kPeer,
          fmt::format("{} ended because it heard nothing of this program, {}", name,
                      describe_activity(activity)),
          "this program was stopped, or its machine slept or was cut off; workers do not go on "
          "alone",
          and_then("", trains)};
}

std::string remedy_of_exit(int status, bool ssh) {
  if (ssh && status == 255) {
    return "ssh could not connect or was cut off: the same ssh command must run 'true' there "
           "without asking for a password";
  }
  if (status == 127) {
    return "the program was not found there: install Motley on that machine or set its "
           "'motley_dir' in the cluster file";
  }
  if (status == 126) return "the program is there but may not be run: check its permissions";
  return "see the worker's log";
}

}  // namespace

FailureKind failure_kind(const Error& reported) {
  if (reported.code == ErrorCode::kPeer) return FailureKind::kPeerLost;
  if (reported.code == ErrorCode::kInternal) return FailureKind::kUnclear;
  return FailureKind::kCertain;
}

std::size_t first_cause(std::span<const Failure> failures) {
  MOTLEY_CHECK(!failures.empty(), "no failure to choose from");
  const auto first =
      std::min_element(failures.begin(), failures.end(),
                       [](const Failure& a, const Failure& b) { return a.kind < b.kind; });
  return static_cast<std::size_t>(first - failures.begin());
}

std::string describe_activity(const Activity& activity) {
  if (!activity.ready) {
    return activity.task.empty() ? "before it was ready"
                                 : fmt::format("before it was ready, {}", activity.task);
  }
  if (!activity.task.empty()) return fmt::format("while it was {}", activity.task);
  if (activity.doing.empty()) {
    return activity.step > 0 ? fmt::format("after step {}", activity.step)
                             : "before its first step";
  }
  if (activity.step <= 0) return fmt::format("while it did {}", activity.doing);
  return fmt::format("while it did {} of step {}", activity.doing, activity.step);
}

Error describe_death(const std::string& name,
                     const ProcessExit& exit,
                     const Activity& activity,
                     bool trains,
                     bool ssh,
                     const std::vector<std::string>& last_lines) {
  if (has_lapsed(exit, last_lines)) return lapsed(name, activity, trains);
  const std::string said =
      last_lines.empty() ? "" : fmt::format("its last words: {}", fmt::join(last_lines, " | "));
  const bool has_steps = trains || !activity.ready;
  const std::string when = has_steps ? ", " + describe_activity(activity) : "";
  if (exit.signal != 0) {
    const auto [cause, remedy] = advice_on_signal(exit.signal, trains);
    return {ErrorCode::kPeer,
            fmt::format("{} was killed by signal {} ({}){}", name, exit.signal,
                        strsignal(exit.signal), when),
            said.empty() ? cause : fmt::format("{}; {}", cause, said), remedy};
  }
  return {ErrorCode::kPeer, fmt::format("{} exited with status {}{}", name, exit.status, when),
          said.empty() ? "it said nothing about the reason" : said,
          remedy_of_exit(exit.status, ssh)};
}

}  // namespace motley
