#include "cluster/recover/loss_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "base/clock.h"
#include "cluster/recover/members.h"

namespace motley {
namespace {

constexpr double kBetweenOutageLines_s = 60;

std::string excluded_text(const std::string& machine, const FailedAttempt& setback) {
  return fmt::format("; {} is left out, since {}", machine,
                     setback.fault.cannot_connect
                         ? "it and other machines cannot connect to each other"
                         : "it alone has failed twice in a row");
}

}  // namespace

std::string loss_text(const Error& error,
                      const Decision& decision,
                      const FailedAttempt& setback,
                      const RecoveryRules& rules,
                      std::int64_t saved_step) {
  std::string text = error.what;
  if (!error.cause.empty()) text += ": " + error.cause;
  if (decision.move == NextMove::kAskAgain) {
    const bool is_one = decision.silent.size() == 1;
    return text + fmt::format("; {} {} not answer{}. The run waits and continues when {}",
                              fmt::join(decision.silent, ", "), is_one ? "does" : "do",
                              is_one ? "" : "; this machine's own network may be down",
                              is_one ? "it answers" : "they answer");
  }
  if (!decision.silent.empty()) text += "; " + left_out_text(decision.silent);
  if (!decision.excluded.empty()) text += excluded_text(decision.excluded, setback);
  text += saved_step > 0 ? "; the run continues from its newest checkpoint"
                         : "; the run restarts from the beginning, as no checkpoint was saved yet";
  if (decision.restart == 0) return text;
  return text + fmt::format(" (restart {} of {})", decision.restart, rules.restarts);
}

// The checkpoint to resume from is known only once all machines were queried for their parts.
std::string going_on_text(std::int64_t saved_step, std::int64_t last_step) {
  if (saved_step == 0) return "the run restarts from the beginning";
  std::string text = fmt::format("the run continues from step {}", saved_step);
  if (last_step > saved_step) {
    text += fmt::format(", {} step{} repeated", last_step - saved_step,
                        last_step - saved_step == 1 ? " is" : "s are");
  }
  return text;
}

Error lacking_error(const Error& failed, const std::vector<std::string>& silent) {
  const bool is_one = silent.size() == 1;
  return {ErrorCode::kPeer,
          fmt::format("the run cannot continue without {}", fmt::join(silent, ", ")),
          fmt::format("{} not answer; without {}: {}{}{}", is_one ? "it answers" : "they answer",
                      is_one ? "it" : "them", failed.what, failed.cause.empty() ? "" : ": ",
                      failed.cause),
          "check that they are on, and that this machine's own network is up"};
}

bool OutageTeller::begins() {
  if (since_s_) return false;
  since_s_ = told_at_s_ = now_s();
  return true;
}

void OutageTeller::tell(const std::vector<std::string>& silent) {
  if (now_s() - told_at_s_ < kBetweenOutageLines_s) return;
  told_at_s_ = now_s();
  log_.info(fmt::format("still waiting for {}, since {:.0f} s; Ctrl-C ends it",
                        fmt::join(silent, ", "), now_s() - *since_s_));
}

bool OutageTeller::ends(const std::vector<std::string>& silent) {
  return std::exchange(since_s_, std::nullopt).has_value() && silent.empty();
}

}  // namespace motley
