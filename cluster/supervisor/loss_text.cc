#include "cluster/supervisor/loss_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "base/clock.h"
#include "cluster/supervisor/members.h"

namespace motley {
namespace {

constexpr double kBetweenOutageLines_s = 60;

std::string excluded_text(const std::string& machine, const FailedAttempt& failed_attempt) {
  return fmt::format("; {} is left out, since {}", machine,
                     failed_attempt.fault.cannot_connect
                         ? "it and other machines cannot connect to each other"
                         : "it alone has failed twice in a row");
}

}  // namespace

std::string loss_text(const Error& error,
                      const Decision& decision,
                      const FailedAttempt& failed_attempt,
                      const RecoveryRules& rules,
                      std::int64_t saved_step) {
  std::string text = error.what;
  if (!error.cause.empty()) text += ": " + error.cause;
  if (decision.next_action == NextAction::kQueryAgain) {
    const bool is_one = decision.silent.size() == 1;
    return text + fmt::format("; {} {} not answer{}. The run waits and continues when {}",
                              fmt::join(decision.silent, ", "), is_one ? "does" : "do",
                              is_one ? "" : "; this machine's own network may be down",
                              is_one ? "it does" : "they do");
  }
  if (!decision.silent.empty()) text += "; " + left_out_text(decision.silent);
  if (!decision.excluded.empty()) text += excluded_text(decision.excluded, failed_attempt);
  text += saved_step > 0 ? "; the run continues from its newest checkpoint"
                         : "; the run restarts from the beginning, as no checkpoint was saved yet";
  if (decision.restart == 0) return text;
  return text + fmt::format(" (restart {} of {})", decision.restart, rules.restarts);
}

// The checkpoint to resume from is known only once all machines were queried for their parts.
std::string restart_text(std::int64_t saved_step, std::int64_t last_step) {
  if (saved_step == 0) return "the run restarts from the beginning";
  std::string text = fmt::format("the run continues from step {}", saved_step);
  if (last_step > saved_step) {
    text += fmt::format(", {} step{} repeated", last_step - saved_step,
                        last_step - saved_step == 1 ? " is" : "s are");
  }
  return text;
}

Error absent_machines_error(const Error& failed,
                            const std::vector<std::string>& silent,
                            bool have_joined) {
  const bool is_one = silent.size() == 1;
  return {ErrorCode::kPeer,
          fmt::format("the run cannot continue without {}", fmt::join(silent, ", ")),
          fmt::format("{} not answer; without {}: {}{}{}", is_one ? "it does" : "they do",
                      is_one ? "it" : "them", failed.what, failed.cause.empty() ? "" : ": ",
                      failed.cause),
          have_joined ? fmt::format("run motley join with the same ticket on {} again",
                                    fmt::join(silent, " and "))
                      : "check that they are on, and that this machine's own network is up"};
}

bool OutageLog::begins() {
  if (since_s_) return false;
  since_s_ = logged_at_s_ = now_s();
  return true;
}

void OutageLog::report_silent(const std::vector<std::string>& silent) {
  if (now_s() - logged_at_s_ < kBetweenOutageLines_s) return;
  logged_at_s_ = now_s();
  log_.info(fmt::format("still waiting for {}, since {:.0f} s; Ctrl-C ends it",
                        fmt::join(silent, ", "), now_s() - *since_s_));
}

bool OutageLog::ends(const std::vector<std::string>& silent) {
  return std::exchange(since_s_, std::nullopt).has_value() && silent.empty();
}

}  // namespace motley
