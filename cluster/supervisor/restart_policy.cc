#include "cluster/supervisor/restart_policy.h"

#include <poll.h>

#include <cmath>
#include <utility>

#include "base/clock.h"
#include "base/process/stop_signals.h"
#include "cluster/launch/workers.h"
#include "cluster/supervisor/members.h"

namespace motley {
namespace {

// A machine that failed by itself is used again after this time, at the next restart.
constexpr double kExcluded_s = 1800;

}  // namespace

Result<Decision> RestartPolicy::decide_next() {
  const std::set<std::string> machines = machine_names(cluster_);
  // A run that ends whatever the machines answer asks none of them.
  std::vector<Member> members = members_of(machines);
  set_states(members);
  Decision decision = decide(last_attempt().at_s, members, attempts_, rules_);
  if (decision.next_action == NextAction::kEnd && decision.reason.empty()) return decision;
  MOTLEY_ASSIGN(members, query_members(cluster_, machines, program_));
  set_states(members);
  problems_ = problems_text(members);
  return decide(now_s(), members, attempts_, rules_);
}

void RestartPolicy::note_outage(std::vector<std::string> missing) {
  attempts_.back().outage_at_s = now_s();
  if (!missing.empty()) attempts_.back().absent_machines = std::move(missing);
}

void RestartPolicy::exclude(const std::string& machine) {
  if (!machine.empty()) excluded_[machine] = now_s() + kExcluded_s;
}

void RestartPolicy::require(const std::vector<std::string>& machines) {
  needed_.insert(machines.begin(), machines.end());
  excluded_.clear();
}

void RestartPolicy::set_states(std::vector<Member>& members) {
  std::erase_if(excluded_, [](const auto& each) { return each.second < now_s(); });
  for (Member& member : members) {
    member.is_excluded = excluded_.contains(member.machine);
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
