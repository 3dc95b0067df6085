#include "cluster/supervisor/restart_policy.h"

#include <poll.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/process/stop_signals.h"
#include "cluster/launch/workers.h"
#include "cluster/supervisor/members.h"

namespace motley {

RestartPolicy::RestartPolicy(const Cluster& cluster,
                             const std::filesystem::path& program,
                             const RecoveryRules& rules)
    : RestartPolicy(
          machine_names(cluster),
          rules,
          [&](const std::set<std::string>& machines) {
            return query_members(cluster, machines, program);
          },
          now_s) {}

RestartPolicy::RestartPolicy(std::set<std::string> machines,
                             const RecoveryRules& rules,
                             Query query,
                             Clock clock)
    : machines_(std::move(machines)),
      rules_(rules),
      query_(std::move(query)),
      clock_(std::move(clock)) {}

Result<Decision> RestartPolicy::decide_next() {
  // A run that ends whatever the machines answer asks none of them.
  std::vector<Member> members = members_of(machines_);
  set_states(members);
  Decision decision = decide(last_attempt().at_s, members, attempts_, rules_);
  if (decision.next_action == NextAction::kEnd && decision.reason.empty()) return decision;
  MOTLEY_ASSIGN(members, query_(machines_));
  set_states(members);
  note_away(members);
  problems_ = problems_text(members);
  return decide(clock_(), members, attempts_, rules_);
}

void RestartPolicy::note_outage(std::vector<std::string> missing) {
  attempts_.back().outage_at_s = clock_();
  if (!missing.empty()) attempts_.back().absent_machines = std::move(missing);
}

void RestartPolicy::exclude(const std::string& machine) {
  if (machine.empty()) return;
  Exclusion& exclusion = exclusions_[machine];
  exclusion.since_s = clock_();
  exclusion.until_s = exclusion.since_s + exclusion_s(++exclusion.times);
}

void RestartPolicy::exclude_for(const std::string& machine, double seconds) {
  Exclusion& exclusion = exclusions_[machine];
  exclusion.since_s = clock_();
  exclusion.until_s = std::max(exclusion.until_s, exclusion.since_s + seconds);
}

void RestartPolicy::note_saved(const std::set<std::string>& machines) {
  for (const std::string& machine : machines) exclusions_.erase(machine);
}

double RestartPolicy::excluded_until_s(const std::string& machine) const {
  const auto found = exclusions_.find(machine);
  return found != exclusions_.end() && found->second.until_s > clock_() ? found->second.until_s : 0;
}

void RestartPolicy::require(const std::vector<std::string>& machines) {
  std::optional<std::string> first;
  for (const std::string& machine : machines) {
    if (excluded_until_s(machine) == 0) continue;
    if (!first || exclusions_.at(machine).since_s < exclusions_.at(*first).since_s) first = machine;
  }
  if (!first) return;
  needed_.insert(*first);
  exclusions_.at(*first).until_s = 0;
}

void RestartPolicy::note_away(const std::vector<Member>& members) {
  FailedAttempt& last = attempts_.back();
  const auto is_away = [&](const std::string& machine) {
    return std::ranges::any_of(members, [&](const Member& member) {
      return member.machine == machine && !member.problem.empty();
    });
  };
  last.were_away = last.were_away || std::ranges::any_of(last.fault.machines, is_away);
}

void RestartPolicy::set_states(std::vector<Member>& members) {
  for (Member& member : members) {
    member.is_excluded = excluded_until_s(member.machine) > 0;
    const auto found = exclusions_.find(member.machine);
    const bool has_failed = found != exclusions_.end() && found->second.times > 0;
    member.is_on_probation = has_failed && !member.is_excluded;
    member.is_needed = needed_.contains(member.machine);
  }
}

Result<void> wait_or_stop(double wait_s) {
  StopSignals signals;
  const double end_s = now_s() + wait_s;
  for (double left_s = wait_s; left_s > 0; left_s = end_s - now_s()) {
    pollfd poll_fd{signals.fd(), POLLIN, 0};
    ::poll(&poll_fd, 1, static_cast<int>(std::ceil(left_s * 1000)));
    if (auto stop = signals.take()) return *std::move(stop);
  }
  return {};
}

}  // namespace motley
