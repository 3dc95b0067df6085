#include "cluster/launch/failure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstring>
#include <string_view>

#include "base/check.h"
#include "protocol/lease_status.h"

namespace motley {
namespace {

struct Advice {
  std::string cause;
  std::string remedy;
};

// For a training, only the run knows the hint on how to resume (cluster/run/resume_hint.h).
std::string and_then(const std::string& remedy, bool trains) {
  if (trains) return remedy;
  return remedy.empty() ? "run the command again" : remedy + "; run the command again";
}

Advice advice_on_signal(int signal, bool trains) {
  if (signal == SIGKILL) {
    return {"killed from outside, or its machine ran out of memory",
            and_then("check that machine's kernel log: sudo dmesg | grep -i 'out of memory' (as "
                     "root without sudo)",
                     trains)};
  }
  if (signal == SIGTERM || signal == SIGINT || signal == SIGHUP) {
    return {"ended from outside", and_then("", trains)};
  }
  return {"the program crashed", and_then("see the worker's log", trains)};
}

Error lease_expired(const std::string& name, const WorkerActivity& activity, bool trains) {
  return {ErrorCode::kPeer,
          fmt::format("{} ended because its lease expired, {}", name, describe_activity(activity)),
          "it received nothing from this program, which was stopped, or whose machine slept or "
          "lost its network",
          and_then("", trains)};
}

constexpr int kSshFailed = 255;

bool any_line_has(const std::vector<std::string>& lines, std::span<const std::string_view> words) {
  return std::ranges::any_of(lines, [&](const std::string& line) {
    return std::ranges::any_of(
        words, [&](std::string_view each) { return line.find(each) != std::string::npos; });
  });
}

// An ssh that fails reports the reason on standard error. If the remote program was killed by a
// signal, ssh exits with the same status but prints nothing.
bool lost_connection(const std::vector<std::string>& last_lines) {
  constexpr std::array<std::string_view, 8> kLost = {
      "Connection to ", "Connection reset", "Connection closed", "closed by remote host",
      "Broken pipe",    "not responding",   "timed out",         "client_loop"};
  return any_line_has(last_lines, kLost);
}

std::string remedy_before_greeting(const std::vector<std::string>& last_lines) {
  if (last_lines.empty()) {
    return "start the program there by hand, with --help; check that machine's kernel log: sudo "
           "dmesg | tail";
  }
  constexpr std::array<std::string_view, 4> kUnreachable = {
      "Could not resolve", "Connection refused", "No route to host", "timed out"};
  if (any_line_has(last_lines, kUnreachable)) {
    return "ssh did not reach the machine: check that it is on, its address and its sshd";
  }
  return "ssh could not log in: the machine's ssh command, with 'true' as its last word, must end "
         "at once without asking for a password";
}

// The meaning of ssh's status 255 depends on whether the worker behind it had started.
Error death_behind_ssh(const WorkerIdentity& identity,
                       const std::string& when,
                       const std::vector<std::string>& last_lines,
                       const std::string& said) {
  if (!identity.greeted) {
    return {
        ErrorCode::kPeer, fmt::format("{} did not start: ssh ended with status 255", identity.name),
        said.empty() ? "ssh printed no message, as when the remote program is killed at its start"
                     : said,
        and_then(remedy_before_greeting(last_lines), identity.trains)};
  }
  if (lost_connection(last_lines)) {
    return {ErrorCode::kPeer, fmt::format("machine {} was lost{}", identity.machine, when),
            fmt::format("the ssh connection to it ended; {}", said),
            and_then(fmt::format("check that {} is on and reachable", identity.machine),
                     identity.trains)};
  }
  const auto [cause, remedy] = advice_on_signal(SIGKILL, identity.trains);
  return {ErrorCode::kPeer,
          fmt::format("{} was killed on machine {}{}", identity.name, identity.machine, when),
          fmt::format("ssh ended with status 255 and no message about the connection, as when the "
                      "remote program is killed: {}{}",
                      cause, said.empty() ? "" : "; " + said),
          remedy};
}

std::string remedy_of_exit(int status) {
  if (status == 127) {
    return "the program was not found there: install Motley on that machine or set its "
           "'motley_dir' in the cluster file";
  }
  if (status == 126) return "the program exists but is not executable: check its permissions";
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

std::string describe_activity(const WorkerActivity& activity) {
  if (!activity.ready) {
    return activity.task.empty() ? "before it was ready"
                                 : fmt::format("before it was ready, {}", activity.task);
  }
  if (!activity.task.empty()) return fmt::format("while {}", activity.task);
  if (activity.current_action.empty()) {
    return activity.step > 0 ? fmt::format("after step {}", activity.step)
                             : "before its first step";
  }
  if (activity.step <= 0) return fmt::format("during {}", activity.current_action);
  return fmt::format("during {} in step {}", activity.current_action, activity.step);
}

Error describe_death(const WorkerIdentity& identity,
                     const ProcessExit& exit,
                     const WorkerActivity& activity,
                     const std::vector<std::string>& last_lines) {
  if (exit.signal == 0 && exit.status == kLeaseExpiredStatus) {
    return lease_expired(identity.name, activity, identity.trains);
  }
  const std::string said =
      last_lines.empty() ? "" : fmt::format("its last output: {}", fmt::join(last_lines, " | "));
  const bool has_steps = identity.trains || !activity.ready;
  const std::string when = has_steps ? ", " + describe_activity(activity) : "";
  if (exit.signal != 0) {
    const auto [cause, remedy] = advice_on_signal(exit.signal, identity.trains);
    return {ErrorCode::kPeer,
            fmt::format("{} was killed by signal {} ({}){}", identity.name, exit.signal,
                        strsignal(exit.signal), when),
            said.empty() ? cause : fmt::format("{}; {}", cause, said), remedy};
  }
  if (identity.ssh && exit.status == kSshFailed)
    return death_behind_ssh(identity, when, last_lines, said);
  return {ErrorCode::kPeer,
          fmt::format("{} exited with status {}{}", identity.name, exit.status, when),
          said.empty() ? "it printed no reason" : said, remedy_of_exit(exit.status)};
}

Error own_absence(double absent_s, const Error& found) {
  return {ErrorCode::kPeer,
          fmt::format("this program was stopped, or its machine slept, for {:.0f} s", absent_s),
          fmt::format("the workers ended without it: {}{}{}", found.what,
                      found.cause.empty() ? "" : ": ", found.cause),
          "keep this machine awake while it trains"};
}

std::optional<PeerFailure> describe_loss(std::span<const Failure> failures,
                                         const std::vector<WorkerIdentity>& workers,
                                         const std::vector<WorkerActivity>& activities) {
  const auto reported = [&](int worker) {
    return std::ranges::find(failures, worker, &Failure::worker) != failures.end();
  };
  const Failure* first = nullptr;  // names a lost worker that reported nothing, else any
  int lost = 0;
  for (const Failure& failure : failures) {
    const std::optional<int> accused = failure.error.peer;
    if (!accused || *accused >= static_cast<int>(workers.size())) continue;
    if (first != nullptr && (reported(*accused) || !reported(lost))) continue;
    first = &failure;
    lost = *accused;
  }
  if (first == nullptr) return {};
  const WorkerIdentity& gone = workers[static_cast<std::size_t>(lost)];
  const WorkerIdentity& witness = workers[static_cast<std::size_t>(first->worker)];
  const std::string seen = with_names(first->error.cause, workers);
  if (reported(lost)) {
    return PeerFailure{
        {ErrorCode::kPeer, fmt::format("{} and {} lost their connection", witness.name, gone.name),
         seen,
         and_then(fmt::format("check the network between {} and {}", witness.machine, gone.machine),
                  gone.trains)},
        {.machines = {witness.machine, gone.machine}}};
  }
  const auto remains = [&](std::size_t other) {
    return workers[other].machine == gone.machine && reported(static_cast<int>(other));
  };
  bool is_machine = witness.machine != gone.machine;
  for (std::size_t other = 0; other < workers.size(); ++other) {
    is_machine = is_machine && !remains(other);
  }
  const std::string when =
      gone.trains ? ", " + describe_activity(activities[static_cast<std::size_t>(lost)]) : "";
  return PeerFailure{
      {ErrorCode::kPeer,
       is_machine ? fmt::format("machine {} was lost{}{}", gone.machine, when,
                                when.empty() ? "" : fmt::format(" on {}", gone.name))
                  : fmt::format("{} was lost{}", gone.name, when),
       fmt::format("reported by {}: {}", witness.name, seen),
       and_then(fmt::format("check that {} is on, awake and reachable", gone.machine),
                gone.trains)},
      {.machines = {gone.machine}}};
}

std::string with_names(std::string text, const std::vector<WorkerIdentity>& workers) {
  constexpr std::string_view kWord = "rank ";
  for (std::size_t at = text.find(kWord); at != std::string::npos; at = text.find(kWord, at)) {
    const char* digits = text.data() + at + kWord.size();
    std::size_t rank = 0;
    const auto [end, code] = std::from_chars(digits, text.data() + text.size(), rank);
    const auto length = static_cast<std::size_t>(end - (text.data() + at));
    const std::string_view rest = std::string_view(text).substr(at + length);
    // "rank 0, 2" is a list, which stays unchanged.
    const bool is_list = rest.size() > 2 && rest.starts_with(", ") && std::isdigit(rest[2]) != 0;
    if (code != std::errc{} || rank >= workers.size() || is_list) {
      at += kWord.size();
      continue;
    }
    text.replace(at, length, workers[rank].name);
    at += workers[rank].name.size();
  }
  return text;
}

}  // namespace motley
