#include "cluster/supervisor/decide.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace motley {
namespace {

bool may_not_happen_again(const FailedAttempt& failed_attempt) {
  return failed_attempt.code == ErrorCode::kPeer ||
         (failed_attempt.code == ErrorCode::kInternal && failed_attempt.has_trained);
}

std::span<const FailedAttempt> consecutive_failed_attempts(
    std::span<const FailedAttempt> failed_attempts) {
  std::size_t count = 0;
  while (count < failed_attempts.size()) {
    ++count;
    if (failed_attempts[failed_attempts.size() - count].has_saved) break;
  }
  return failed_attempts.last(count);
}

// All members together.
class Members {
 public:
  explicit Members(std::span<const Member> members) : members_(members) {}

  // Whether the others can continue, or already do, without it. A machine that is excluded may take
  // the place of one that is needed.
  [[nodiscard]] bool can_do_without(const std::string& machine) const {
    bool others_are_left = false;
    bool others_are_excluded = false;
    bool is_needed = false;
    for (const Member& member : members_) {
      const bool is_it = member.machine == machine;
      others_are_left = others_are_left || (!is_it && !member.is_excluded);
      others_are_excluded = others_are_excluded || (!is_it && member.is_excluded);
      is_needed = is_needed || (is_it && member.is_needed);
    }
    return others_are_left && (!is_needed || others_are_excluded);
  }

  [[nodiscard]] bool is_excluded(const std::string& machine) const {
    return std::ranges::any_of(members_, [&](const Member& member) {
      return member.machine == machine && member.is_excluded;
    });
  }

  [[nodiscard]] bool is_on_probation(const std::string& machine) const {
    return std::ranges::any_of(members_, [&](const Member& member) {
      return member.machine == machine && member.is_on_probation;
    });
  }

  [[nodiscard]] std::vector<std::string> silent() const {
    std::vector<std::string> names;
    for (const Member& member : members_) {
      if (!member.is_excluded && !member.problem.empty()) names.push_back(member.machine);
    }
    return names;
  }

  [[nodiscard]] std::vector<std::string> left_out() const {
    std::vector<std::string> names;
    for (const Member& member : members_) {
      if (member.is_excluded || !member.problem.empty()) names.push_back(member.machine);
    }
    return names;
  }

  [[nodiscard]] std::size_t expected() const {
    return static_cast<std::size_t>(std::ranges::count(members_, false, &Member::is_excluded));
  }

 private:
  std::span<const Member> members_;
};

// Whether it was caused by one machine alone that the others can continue without.
bool is_by_one(const FailedAttempt& failed_attempt, const Members& members) {
  return failed_attempt.fault.machines.size() == 1 &&
         members.can_do_without(failed_attempt.fault.machines.front());
}

bool is_counted(const FailedAttempt& failed_attempt, const Members& members) {
  const bool is_excused = failed_attempt.is_by_request || failed_attempt.outage_at_s ||
                          failed_attempt.fault.own_absence || failed_attempt.fault.cannot_connect;
  return !is_excused && !is_by_one(failed_attempt, members);
}

// The machine to leave out because of its failures, "" for none.
std::string to_exclude(std::span<const FailedAttempt> row, const Members& members) {
  const FailedAttempt& last = row.back();
  if (last.outage_at_s) return "";
  if (last.fault.cannot_connect) {
    for (auto it = last.fault.machines.rbegin(); it != last.fault.machines.rend(); ++it) {
      if (members.can_do_without(*it) && !members.is_excluded(*it)) return *it;
    }
    return "";
  }
  if (!is_by_one(last, members) || last.were_away) return "";
  if (members.is_excluded(last.fault.machines.front())) return "";
  const auto failed_alike = std::ranges::count_if(row, [&](const FailedAttempt& failed_attempt) {
    return !failed_attempt.outage_at_s && !failed_attempt.were_away &&
           failed_attempt.fault.machines == last.fault.machines;
  });
  const std::string& machine = last.fault.machines.front();
  const int allowed = members.is_on_probation(machine) ? 1 : RecoveryRules::kOwnFailuresMax;
  return failed_alike >= allowed ? machine : "";
}

// Whether a restart would fail again: the machines could not connect, and none can be left out.
bool is_hopeless(const FailedAttempt& failed_attempt, const std::string& excluded) {
  if (!failed_attempt.fault.cannot_connect || failed_attempt.outage_at_s) return false;
  return failed_attempt.is_of_new_run || excluded.empty();
}

// Whether too few machines answer to continue now.
bool is_too_few(double now_s,
                const Members& members,
                const std::vector<std::string>& silent,
                const FailedAttempt& last,
                const RecoveryRules& rules) {
  if (silent.empty()) return false;
  const std::size_t answering = members.expected() - silent.size();
  if (answering == 0) return true;
  if (answering == 1 && silent.size() >= 2 && now_s - last.at_s < rules.continue_alone_after_s)
    return true;
  const auto is_silent = [&](const std::string& machine) {
    return std::ranges::count(silent, machine) > 0;
  };
  return !last.absent_machines.empty() && std::ranges::all_of(last.absent_machines, is_silent);
}

}  // namespace

Decision decide(double now_s,
                std::span<const Member> machines,
                std::span<const FailedAttempt> failed_attempts,
                const RecoveryRules& rules) {
  const FailedAttempt& last = failed_attempts.back();
  if (rules.restarts == 0 || !may_not_happen_again(last)) return {};
  const Members members(machines);
  const auto row = consecutive_failed_attempts(failed_attempts);
  const std::string excluded = to_exclude(row, members);
  if (is_hopeless(last, excluded)) return {};
  const auto without_outage = std::ranges::count_if(
      row, [](const FailedAttempt& failed_attempt) { return !failed_attempt.outage_at_s; });
  if (without_outage > RecoveryRules::kLaunchesMax) {
    return {.reason = fmt::format("{} launches in a row reached no new checkpoint", row.size())};
  }
  Decision decision{
      .next_action = NextAction::kRestart, .excluded = excluded, .silent = members.silent()};
  decision.is_outage = is_too_few(now_s, members, decision.silent, last, rules);
  const bool is_late =
      !decision.silent.empty() && last.outage_at_s && now_s - *last.outage_at_s < rules.grace_s;
  const bool has_limit = rules.longest_outage_s > 0;
  if ((decision.is_outage || is_late) && has_limit && now_s - last.at_s > rules.longest_outage_s) {
    decision.next_action = NextAction::kEnd;
    const double silent_s = now_s - last.at_s;
    const bool is_short = silent_s < 120;
    decision.reason =
        fmt::format("{} did not answer for {:.0f} {}", fmt::join(decision.silent, ", "),
                    is_short ? silent_s : silent_s / 60, is_short ? "seconds" : "minutes");
    return decision;
  }
  if (decision.is_outage || is_late) {
    decision.next_action = NextAction::kQueryAgain;
    decision.wait_s = rules.query_interval_s;
    return decision;
  }
  const auto counted =
      static_cast<int>(std::ranges::count_if(row, [&](const FailedAttempt& failed_attempt) {
        return is_counted(failed_attempt, members);
      }));
  if (counted > rules.restarts) {
    return {.reason = fmt::format("it was restarted {} times without reaching a new checkpoint",
                                  rules.restarts)};
  }
  decision.without = members.left_out();
  if (!excluded.empty() && std::ranges::count(decision.without, excluded) == 0) {
    decision.without.push_back(excluded);
  }
  // The number of restarts in a row for like reasons, and how many of them do not wait.
  int alike = counted;
  int free = 1;
  if (is_counted(last, members)) {
    decision.restart = counted;
  } else {
    alike = static_cast<int>(row.size()) - counted;
    free = excluded.empty() ? RecoveryRules::kFreeRestarts : alike;
  }
  if (alike > free) {
    const double after_s = std::min(
        rules.wait_s * std::pow(RecoveryRules::kLonger, alike - free - 1), rules.longest_wait_s);
    decision.wait_s = std::max(0.0, last.at_s + after_s - now_s);
  }
  return decision;
}

double exclusion_s(int times) {
  constexpr double kFirst_s = 300;
  constexpr double kLongest_s = 12 * 3600;
  return std::min(kFirst_s * std::pow(2, std::min(times, 30) - 1), kLongest_s);
}

}  // namespace motley
